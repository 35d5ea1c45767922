//! What only who sits at this computer asks for: codes, pairings and remotes.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::remote::CODE_LIFE_MS;
use toolshelf_core::remote::name;
use toolshelf_core::remote::scope::Scope;

use super::Remote;
use super::codes::Terms;
use super::offer::qr;
use super::pairings::Pairing;

/// Longest time that a token can be given, in milliseconds: ten years.
const LIFE_MAX_MS: u64 = 10 * 366 * 24 * 60 * 60 * 1_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Offer {
    name: Option<String>,
    #[serde(default)]
    scopes: Vec<Scope>,
    life_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    link: String,
    name: Option<String>,
    authorities: Option<PathBuf>,
}

impl Remote {
    /// Does what `command` asks for; `None` for a command that is none of these. `environment` and `label` are what this
    /// machine is.
    ///
    /// | command | answer |
    /// |---|---|
    /// | `pairings.offer {name?, scopes?, lifeMs?}` | `{ok, code, link, qr, environment, expiresInMs}` |
    /// | `pairings.list`, `pairings.revoke {id}` | `{ok, pairings}`, `{ok, pairing}` |
    /// | `environments.list`, `environments.add {link, name?, authorities?}` | `{ok, environments}`, `{ok, environment}` |
    /// | `environments.remove {key}`, `environments.revoke {key}`, `environments.retry {key}` | `{ok, …}` |
    pub(crate) async fn admin(
        &self,
        command: &str,
        args: &Map<String, Value>,
        environment: &str,
        label: &str,
    ) -> Option<Result<Value, Refusal>> {
        Some(match command {
            "pairings.offer" => read(args).and_then(|offer| self.offer(offer, environment)),
            "pairings.list" => self.pairings().list().map(|(list, now)| {
                json!({ "ok": true, "pairings": list.iter().map(|known| shown(known, now)).collect::<Vec<_>>() })
            }),
            "pairings.revoke" => read(args).and_then(|Which { id }| {
                let revoked = self.pairings().revoke(&id)?;
                Ok(json!({ "ok": true, "pairing": shown(&revoked, revoked.revoked_at_ms.unwrap_or_default()) }))
            }),
            "environments.list" => {
                self.environments().list().map(|list| json!({ "ok": true, "environments": list }))
            }
            "environments.add" => match read(args) {
                Ok(Add { link, name, authorities }) => {
                    let calls_itself = name.unwrap_or_else(|| label.to_owned());
                    let added = self.environments().add(&link, &calls_itself, authorities).await;
                    added.map(|added| json!({ "ok": true, "environment": added }))
                }
                Err(refusal) => Err(refusal),
            },
            "environments.remove" => read(args).and_then(|Key { key }| self.environments().remove(&key)),
            "environments.revoke" => match read(args) {
                Ok(Key { key }) => self.environments().revoke(&key).await,
                Err(refusal) => Err(refusal),
            },
            "environments.retry" => read(args).and_then(|Key { key }| {
                self.environments().find(&key)?.retry();
                Ok(json!({ "ok": true }))
            }),
            _ => return None,
        })
    }

    fn offer(&self, offer: Offer, environment: &str) -> Result<Value, Refusal> {
        let Offer { name: given, scopes, life_ms } = offer;
        let reach = self.reach().ok_or_else(|| {
            let why = "no companion is served here that another machine could reach; start `toolshelf serve`";
            Refusal::new(Code::MachineUnreachable, why)
        })?;
        let name = match given {
            Some(given) => Some(name(&given).ok_or_else(|| {
                Refusal::new(Code::InvalidArgument, "the name has nothing that can be printed")
            })?),
            None => None,
        };
        if life_ms.is_some_and(|life| life == 0 || life > LIFE_MAX_MS) {
            let why = "a token holds for a millisecond at least, and for ten years at most";
            return Err(Refusal::new(Code::InvalidArgument, why));
        }
        let code = self.pairings().offer(Terms { name, scopes, life_ms })?;
        let link = reach.link(environment, &code).to_string();
        Ok(json!({
            "ok": true,
            "code": *code,
            "qr": qr(&link)?,
            "link": link,
            "environment": environment,
            "fingerprint": reach.fingerprint,
            "expiresInMs": CODE_LIFE_MS,
        }))
    }
}

/// What a person is shown of a pairing: never its hash.
fn shown(pairing: &Pairing, now_ms: u64) -> Value {
    let Pairing { id, name, scopes, origin, created_at_ms, expires_at_ms, revoked_at_ms, .. } = pairing;
    json!({
        "id": id,
        "name": name,
        "scopes": scopes,
        "origin": origin,
        "state": pairing.state(now_ms),
        "createdAtMs": created_at_ms,
        "expiresAtMs": expires_at_ms,
        "revokedAtMs": revoked_at_ms,
    })
}

fn read<T: DeserializeOwned>(args: &Map<String, Value>) -> Result<T, Refusal> {
    serde_json::from_value(Value::Object(args.clone()))
        .map_err(|err| Refusal::new(Code::InvalidArgument, cut(&err.to_string(), 120)))
}
