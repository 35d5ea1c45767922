//! What a manifest asks for, and what a grant gives, in plain words. What comes from outside is cut, and hides nothing.

use toolshelf_browser::companion::installed::{CallLimits, Manifest};
use toolshelf_browser::core::extension::TrustTier;
use toolshelf_browser::core::grant::Grant;

use crate::text::{counted, thousands, visible};

/// Longest name that is shown, in characters.
pub(crate) const NAME_MAX: usize = 120;
/// Longest text that is shown, in characters.
pub(crate) const TEXT_MAX: usize = 1_000;
/// Most parts of a list that are named.
const LISTED_MAX: usize = 12;

/// A text from outside: at most so many characters of it, in which nothing hides.
pub(crate) fn shown(text: &str, most: usize) -> String {
    let mut letters = text.chars();
    let kept: String = letters.by_ref().take(most).collect();
    let mut shown = visible(kept.as_bytes());
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// A name from outside.
pub(crate) fn name(text: &str) -> String {
    shown(text, NAME_MAX)
}

/// `` `a`, `b` and 3 more ``.
pub(crate) fn list(names: &[String]) -> String {
    let mut words: Vec<_> = names
        .iter()
        .take(LISTED_MAX)
        .map(|text| ["`", &name(text).replace('`', "'"), "`"].concat())
        .collect();
    let more = names.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        words.push([&thousands(more as u64), " more"].concat());
    }
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => [&before.join(", "), " and ", last].concat(),
        _ => words.concat(),
    }
}

/// One thing that a manifest asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Whether a person had better think about it.
    pub(crate) is_weighty: bool,
    /// What it is, as a sentence.
    pub(crate) words: String,
}

/// What it asks for, one sentence for each.
pub(crate) fn wishes(manifest: &Manifest, limits: Option<CallLimits>) -> Vec<Wish> {
    let mut wishes = vec![runs(manifest, limits)];
    let mut wish = |is_weighty, words: String| wishes.push(Wish { is_weighty, words });
    let has = |capability: &str| manifest.capabilities.iter().any(|given| given == capability);
    match (has("facts:read"), has("facts:write")) {
        (true, true) => wish(
            false,
            "It wants to read and to write facts. Which ones, each grant says; without a grant, none."
                .to_owned(),
        ),
        (true, false) => wish(
            false,
            "It wants to read facts. Which ones, each grant says; without a grant, none.".to_owned(),
        ),
        (false, true) => wish(
            false,
            "It wants to write facts. Which ones, each grant says; without a grant, none.".to_owned(),
        ),
        (false, false) => wish(false, "It asks for no facts.".to_owned()),
    }
    if manifest.private_facts || has("facts:private:read") {
        wish(true, "It would like to see private facts. No grant can reach them, so it will not.".to_owned());
    }
    if has("passport:read") {
        wish(false, "It wants to know on whose behalf it is called.".to_owned());
    }
    if manifest.content_preview || has("tenant:content:preview") {
        wish(true, "It would like to see contents of documents.".to_owned());
    }
    let known =
        ["facts:read", "facts:write", "facts:private:read", "passport:read", "tenant:content:preview"];
    let others: Vec<_> =
        manifest.capabilities.iter().filter(|given| !known.contains(&given.as_str())).cloned().collect();
    if !others.is_empty() {
        wish(true, ["It also names ", &list(&others), ". Nothing here gives it that."].concat());
    }
    network(manifest, &mut wish);
    let secrets: Vec<_> = manifest.tools.iter().filter_map(|tool| tool.secret.clone()).collect();
    if !secrets.is_empty() {
        wish(true, ["It is called with the secret ", &list(&secrets), ", where a grant names it."].concat());
    }
    wishes
}

fn runs(manifest: &Manifest, limits: Option<CallLimits>) -> Wish {
    let (is_weighty, words) = match (manifest.kind.as_str(), limits) {
        ("wasm", Some(limits)) => {
            let (fuel, time) = (thousands(limits.fuel), thousands(limits.wall_ms));
            let memory = thousands(limits.memory_bytes / 1_000_000);
            let bounds = [&time, " ms, ", &memory, " MB of memory and ", &fuel, " units of fuel"].concat();
            let runs =
                "It runs inside the companion, without files and without a network; each call has at most ";
            (false, [runs, &bounds, "."].concat())
        }
        ("wasm", None) => {
            (false, "It runs inside the companion, without files and without a network.".to_owned())
        }
        ("external_tool", _) => {
            let endpoint = manifest.endpoint.as_deref().unwrap_or_default();
            let held = [(manifest.max_runtime_ms, " ms"), (manifest.max_output_bytes, " bytes of answer")];
            let held: Vec<_> = held
                .iter()
                .filter(|part| part.0 > 0)
                .map(|part| [&thousands(part.0), part.1].concat())
                .collect();
            let held = if held.is_empty() {
                String::new()
            } else {
                [", for at most ", &held.join(" and ")].concat()
            };
            let to = shown(endpoint, 300).replace('`', "'");
            (
                true,
                ["What it is asked leaves this computer: each call goes to `", &to, "`", &held, "."].concat(),
            )
        }
        (kind, _) => (
            false,
            ["It is a pack of the kind `", &name(kind).replace('`', "'"), "`, which is never called."]
                .concat(),
        ),
    };
    Wish { is_weighty, words }
}

fn network(manifest: &Manifest, wish: &mut impl FnMut(bool, String)) {
    if manifest.kind == "external_tool" {
        match manifest.hosts.is_empty() {
            true => wish(true, "It names no hosts, so it may ask any that the companion allows.".to_owned()),
            false => wish(false, ["It asks no other hosts than ", &list(&manifest.hosts), "."].concat()),
        }
    }
    if manifest.requires_user_token {
        wish(true, "It needs a token of yours for the service that it speaks to.".to_owned());
    }
}

/// Who vouches for a publisher, in a few words.
pub(crate) fn trust(tier: TrustTier) -> &'static str {
    match tier {
        TrustTier::FirstParty => "published with Toolshelf",
        TrustTier::LocallySigned => "signed with a key that this computer trusts",
        TrustTier::CommunityReviewed => "signed and reviewed by others",
        TrustTier::Unknown => "nobody vouches for it",
    }
}

/// What a grant gives, one sentence for each. `now_ms` is in milliseconds since 1970; `date` writes a moment.
pub(crate) fn gives(grant: &Grant, now_ms: u64, date: impl Fn(u64) -> String) -> Vec<String> {
    let mut gives = Vec::new();
    gives.push(match grant.allowed_tool_names.is_empty() {
        true => "May call all its tools.".to_owned(),
        false => ["May call ", &list(&grant.allowed_tool_names), "."].concat(),
    });
    let below = |verb: &str, prefixes: &[String]| match prefixes.is_empty() {
        true => [verb, " no facts."].concat(),
        false => [verb, " facts whose names begin with ", &list(prefixes), "."].concat(),
    };
    gives.push(below("Reads", &grant.allowed_prefixes_read));
    gives.push(below("Writes", &grant.allowed_prefixes_write));
    if !grant.allowed_secret_ids.is_empty() {
        gives.push(["Reads the secrets ", &list(&grant.allowed_secret_ids), "."].concat());
    }
    if let Some(rate) = grant.rate_limit_per_min {
        gives.push([&counted(rate.into(), "call", "calls"), " a minute."].concat());
    }
    match grant.expires_at_unix_ms {
        Some(end) if end <= now_ms => gives.push(["Ended ", &date(end), "."].concat()),
        Some(end) => gives.push(["Until ", &date(end), "."].concat()),
        None => gives.push("Until it is revoked.".to_owned()),
    }
    gives
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(kind: &str, capabilities: &[&str]) -> Manifest {
        Manifest {
            whole: serde_json::Value::Null,
            id: "ext.a".into(),
            name: "A".into(),
            version: "1".into(),
            publisher: "p".into(),
            summary: String::new(),
            kind: kind.into(),
            capabilities: capabilities.iter().map(|name| (*name).to_owned()).collect(),
            hosts: Vec::new(),
            requires_user_token: false,
            content_preview: false,
            private_facts: false,
            max_runtime_ms: 0,
            max_output_bytes: 0,
            signed_by: None,
            endpoint: None,
            tools: Vec::new(),
            module_path: None,
            module_url: None,
            module_sha256: None,
        }
    }

    fn said(manifest: &Manifest) -> String {
        let limits = CallLimits { fuel: 1_000_000, memory_bytes: 16_000_000, wall_ms: 1_000 };
        wishes(manifest, Some(limits)).into_iter().map(|wish| wish.words).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_module_asks_for_facts_in_plain_words() {
        let said = said(&manifest("wasm", &["facts:read", "facts:write"]));
        assert_eq!(
            said,
            "It runs inside the companion, without files and without a network; each call has at most 1,000 ms, 16 MB of \
             memory and 1,000,000 units of fuel.\nIt wants to read and to write facts. Which ones, each grant says; \
             without a grant, none."
        );
    }

    #[test]
    fn what_leaves_the_computer_is_said_to() {
        let mut external = manifest("external_tool", &["admin:read", "passport:read"]);
        external.endpoint = Some("https://a.example/`x`".into());
        external.max_runtime_ms = 1_500;
        external.requires_user_token = true;
        let all = said(&external);
        for part in [
            "leaves this computer: each call goes to `https://a.example/'x'`, for at most 1,500 ms.",
            "It also names `admin:read`. Nothing here gives it that.",
            "It names no hosts",
            "on whose behalf",
            "a token of yours",
            "It asks for no facts.",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
        external.hosts = vec!["a.example".into(), "b.example".into()];
        assert!(said(&external).contains("no other hosts than `a.example` and `b.example`."));
        assert!(wishes(&external, None)[0].is_weighty);
        assert!(said(&manifest("cli_recipe", &[])).contains("`cli_recipe`, which is never called"));
    }

    #[test]
    fn hostile_texts_are_cut_and_hide_nothing() {
        let long = "x".repeat(100_000);
        assert_eq!(shown(&long, 10), "xxxxxxxxxx…");
        assert_eq!(shown("a\u{202e}b", 10), "a‹U+202E›b");
        assert_eq!(shown("<b>", 10), "<b>");
        let many: Vec<_> = (0..300).map(|at| format!("h{at}")).collect();
        assert!(list(&many).ends_with("`h11` and 288 more"), "{}", list(&many));
        let mut hostile = manifest("wasm", &[]);
        hostile.capabilities = vec![long];
        assert!(said(&hostile).len() < 1_000);
    }

    #[test]
    fn a_grant_says_what_it_gives() {
        let date = |ms: u64| format!("at {ms}");
        let bare = Grant::default();
        assert_eq!(
            gives(&bare, 0, date),
            ["May call all its tools.", "Reads no facts.", "Writes no facts.", "Until it is revoked."]
        );
        let whole = Grant {
            allowed_tool_names: vec!["t".into()],
            allowed_prefixes_read: vec!["a::".into(), "b::".into()],
            allowed_prefixes_write: vec!["a::".into()],
            allowed_secret_ids: vec!["key".into()],
            rate_limit_per_min: Some(1),
            expires_at_unix_ms: Some(5),
            ..bare
        };
        assert_eq!(
            gives(&whole, 4, date),
            [
                "May call `t`.",
                "Reads facts whose names begin with `a::` and `b::`.",
                "Writes facts whose names begin with `a::`.",
                "Reads the secrets `key`.",
                "1 call a minute.",
                "Until at 5."
            ]
        );
        assert_eq!(gives(&whole, 5, date).last().unwrap(), "Ended at 5.");
    }
}
