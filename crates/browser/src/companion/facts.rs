//! The facts of the companion.

use serde_json::Value;

use super::client::{Client, PATIENCE_MS};
use super::problem::{Problem, ask, escaped, known};
use super::wire::{Read, flag, list, maybe_text, number, text, whole};

/// How long deleting may take, in milliseconds: it costs as much as the store holds.
const DELETE_PATIENCE_MS: u32 = 120_000;
/// Facts of one page of an export: with values as long as they may be, a page is still one that is read.
const EXPORT_PAGE: usize = 100;
/// Facts that a search finds at most.
pub const FOUND_MAX: usize = 100;

/// A name directly below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The entity, or the longer prefix, from its beginning.
    pub name: String,
    /// Whether it is a prefix.
    pub is_prefix: bool,
}

/// One page of names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// The names.
    pub names: Vec<Name>,
    /// What the next page comes after.
    pub next: Option<String>,
}

/// One version of a fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Names this version.
    pub id: String,
    /// Of what.
    pub entity: String,
    /// Which property.
    pub key: String,
    /// The value.
    pub value: String,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// When it was stored, as a text.
    pub stored_at: String,
    /// From 1 on.
    pub version: u64,
    /// Whether it is private.
    pub is_private: bool,
    /// Id of the version before.
    pub supersedes: Option<String>,
    /// Id of the version after.
    pub superseded_by: Option<String>,
    /// Who stored it.
    pub actor: Option<String>,
    /// Where it comes from.
    pub source: Option<String>,
}

fn fact(value: &Value) -> Read<Fact> {
    Ok(Fact {
        id: text(value, "fact_id")?,
        entity: text(value, "entity")?,
        key: text(value, "key")?,
        value: text(value, "value")?,
        confidence: number(value, "confidence")?,
        stored_at: text(value, "stored_at")?,
        version: whole(value, "version")?,
        is_private: flag(value, "private")?,
        supersedes: maybe_text(value, "supersedes"),
        superseded_by: maybe_text(value, "superseded_by"),
        actor: maybe_text(value, "actor"),
        source: maybe_text(value, "source_receipt"),
    })
}

fn names(value: &Value) -> Read<Names> {
    let name = |value: &Value| Ok(Name { name: text(value, "name")?, is_prefix: flag(value, "is_prefix")? });
    Ok(Names { names: list(value, "names", name)?, next: maybe_text(value, "next") })
}

/// Asks the companion for its facts. Dropping a future gives its request up.
#[derive(Debug, Clone)]
pub struct Facts {
    client: Client,
}

impl Facts {
    /// Those of the companion that `client` asks.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, Problem> {
        let mut path = path.to_owned();
        for (at, (name, value)) in query.iter().enumerate() {
            path.extend([if at == 0 { "?" } else { "&" }, name, "=", &escaped(value)]);
        }
        ask(&self.client, "GET", &path, None, PATIENCE_MS).await
    }

    /// The names directly below a prefix.
    ///
    /// # Errors
    /// A [`Problem`], as with everything here.
    pub async fn browse(&self, prefix: &str, after: Option<&str>, private: bool) -> Result<Names, Problem> {
        let mut query = vec![("prefix", prefix), ("include_private", word(private))];
        query.extend(after.map(|after| ("after", after)));
        known(names(&self.get("/v1/facts/browse", &query).await?))
    }

    /// The newest versions of an entity's facts, private ones too, by their keys.
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn of_entity(&self, entity: &str) -> Result<Vec<Fact>, Problem> {
        let path = ["/v1/facts/entity/", &escaped(entity)].concat();
        known(list(&self.get(&path, &[]).await?, "facts", fact))
    }

    /// Every version of a fact, the newest first.
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn history(&self, entity: &str, key: &str) -> Result<Vec<Fact>, Problem> {
        let query = [("entity", entity), ("key", key)];
        known(list(&self.get("/v1/facts/history", &query).await?, "facts", fact))
    }

    /// Facts below a prefix that have one of the words; at most [`FOUND_MAX`].
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn find(&self, prefix: &str, words: &str, private: bool) -> Result<Vec<Fact>, Problem> {
        let most = FOUND_MAX.to_string();
        let query = [
            ("entity_prefix", prefix),
            ("query", words),
            ("top_k", &*most),
            ("include_private", word(private)),
        ];
        known(list(&self.get("/v1/facts", &query).await?, "facts", fact))
    }

    /// Deletes for good: with the newest version go all, with an older one that alone.
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn delete(&self, id: &str) -> Result<(), Problem> {
        let path = ["/v1/facts/", &escaped(id)].concat();
        ask(&self.client, "DELETE", &path, None, DELETE_PATIENCE_MS).await.map(drop)
    }

    /// Every version of every fact below a prefix that is not private, as JSON. `told` hears how many there are so far.
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn export(&self, prefix: &str, told: impl Fn(usize)) -> Result<Vec<Value>, Problem> {
        let limit = EXPORT_PAGE.to_string();
        let mut all = Vec::new();
        let mut cursor = None::<String>;
        loop {
            let mut query = vec![("limit", &*limit)];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page = self.get("/v1/facts/export", &query).await?;
            let facts = known(list(&page, "facts", |fact| Ok(fact.clone())))?;
            let is_below =
                |fact: &Value| maybe_text(fact, "entity").is_some_and(|name| name.starts_with(prefix));
            all.extend(facts.into_iter().filter(is_below));
            told(all.len());
            let next = maybe_text(&page, "next_cursor");
            // A cursor that does not move would have no end.
            match next.filter(|next| Some(next) != cursor.as_ref()) {
                Some(next) => cursor = Some(next),
                None => return Ok(all),
            }
        }
    }
}

fn word(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_and_names_are_read_field_by_field() {
        // As `facts::Fact` is written; its own test holds that.
        let told = json!({"fact_id": "fact_1", "tenant_hash": "default", "entity": "e", "key": "k", "value": "v",
            "source_receipt": null, "confidence": 0.5, "stored_at": "1970-01-01T00:00:01.500Z", "tokens": 1,
            "deleted": false, "version": 2, "private": true, "horizon_class": "none", "supersedes": "fact_0",
            "superseded_by": "fact_2", "actor": "pack:a@1#h"});
        let read = fact(&told).unwrap();
        assert_eq!((read.version, read.is_private, read.confidence), (2, true, 0.5));
        assert_eq!(
            (read.supersedes.as_deref(), read.superseded_by.as_deref()),
            (Some("fact_0"), Some("fact_2"))
        );
        assert_eq!((read.actor.as_deref(), read.source), (Some("pack:a@1#h"), None));
        assert_eq!(fact(&json!({"fact_id": "x"})), Err("entity"));

        let told = json!({"names": [{"name": "a::", "is_prefix": true}, {"name": "b", "is_prefix": false}],
            "next": "b"});
        let read = names(&told).unwrap();
        assert_eq!((read.names.len(), read.names[0].is_prefix, read.next.as_deref()), (2, true, Some("b")));
        assert_eq!(names(&json!({"names": [], "next": null})), Ok(Names::default()));
    }
}
