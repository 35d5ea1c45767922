//! A grant as it is filled in, and which field a "no" of the companion is about.

use toolshelf_browser::core::grant::Grant;

/// A field of the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// On whose behalf.
    Passport,
    /// The tools.
    Tools,
    /// What may be read.
    Read,
    /// What may be written.
    Write,
    /// Calls in a minute.
    Rate,
    /// When it ends.
    Expiry,
    /// The secrets.
    Secrets,
}

/// What is in the form.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Draft {
    /// On whose behalf.
    pub(crate) passport: String,
    /// The tools that may be called; none means all.
    pub(crate) tools: Vec<String>,
    /// Prefixes, one in each line.
    pub(crate) read: String,
    /// Prefixes, one in each line.
    pub(crate) write: String,
    /// Calls in a minute; nothing where it is empty.
    pub(crate) rate: String,
    /// When it ends, in milliseconds since 1970; never where there is none.
    pub(crate) expires_at_ms: Option<u64>,
    /// Ids, one in each line.
    pub(crate) secrets: String,
}

impl Draft {
    /// The grant that it asks for. Whether it may be given is decided by the companion.
    ///
    /// # Errors
    /// The field that cannot be read, and what is wrong with it.
    pub(crate) fn grant(&self, extension: &str) -> Result<Grant, (Part, String)> {
        let rate = self.rate.trim();
        let rate = match rate.is_empty() {
            true => None,
            false => {
                let wrong = || (Part::Rate, "This is no whole number.".to_owned());
                Some(rate.parse().map_err(|_| wrong())?)
            }
        };
        let lines = |text: &str| {
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        Ok(Grant {
            extension_id: extension.to_owned(),
            passport_fpr: self.passport.trim().to_owned(),
            allowed_tool_names: self.tools.clone(),
            allowed_prefixes_read: lines(&self.read),
            allowed_prefixes_write: lines(&self.write),
            rate_limit_per_min: rate,
            expires_at_unix_ms: self.expires_at_ms,
            allowed_secret_ids: lines(&self.secrets),
            ..Grant::default()
        })
    }
}

/// Which field of the grant the companion's sentence is about; none where it is about the whole.
pub(crate) fn part_of(why: &str, grant: &Grant) -> Option<Part> {
    let is = |begin: &str| why.starts_with(begin);
    if is("invalid prefix '") {
        // The sentence has the prefix, which may be cut.
        let named = |prefixes: &[String]| {
            prefixes.iter().any(|prefix| {
                why.strip_prefix("invalid prefix '")
                    .is_some_and(|rest| rest.starts_with(&[prefix, "'"].concat()) || prefix.len() > 200)
            })
        };
        return Some(match named(&grant.allowed_prefixes_read) {
            true => Part::Read,
            false => Part::Write,
        });
    }
    [
        ("invalid passport_fpr", Part::Passport),
        ("grant already exists", Part::Passport),
        ("invalid allowed_tool_names", Part::Tools),
        ("invalid tool name", Part::Tools),
        ("invalid allowed_prefixes_read", Part::Read),
        ("invalid allowed_prefixes_write", Part::Write),
        ("invalid rate_limit_per_min", Part::Rate),
        ("invalid expires_at_unix_ms", Part::Expiry),
        ("invalid allowed_secret_ids", Part::Secrets),
        ("invalid secret id", Part::Secrets),
    ]
    .into_iter()
    .find_map(|(begin, part)| is(begin).then_some(part))
}

#[cfg(test)]
mod tests {
    use toolshelf_browser::core::extension::ExtensionError;

    use super::*;

    fn draft() -> Draft {
        Draft { passport: " p_ann ".into(), read: "notes::\n\n tags:: \n".into(), ..Draft::default() }
    }

    #[test]
    fn lines_become_prefixes_and_an_empty_rate_is_none() {
        let grant = draft().grant("ext.a").unwrap();
        assert_eq!((&*grant.passport_fpr, grant.rate_limit_per_min), ("p_ann", None));
        assert_eq!(grant.allowed_prefixes_read, ["notes::", "tags::"]);
        assert!(grant.allowed_prefixes_write.is_empty());
        let rated = Draft { rate: " 7 ".into(), ..draft() };
        assert_eq!(rated.grant("ext.a").unwrap().rate_limit_per_min, Some(7));
        for rate in ["x", "-1", "1.5", "4294967296"] {
            let wrong = Draft { rate: rate.into(), ..draft() };
            assert_eq!(wrong.grant("ext.a").unwrap_err().0, Part::Rate, "{rate}");
        }
    }

    #[test]
    fn each_sentence_of_the_rules_belongs_to_its_field() {
        let part = |change: fn(&mut Grant)| {
            let mut grant = draft().grant("ext.a").unwrap();
            grant.granted_at_unix_ms = 10;
            change(&mut grant);
            let why = grant.check(&["mine::".into()]).unwrap_err().to_string();
            part_of(&why, &grant)
        };
        assert_eq!(part(|grant| grant.passport_fpr = " ".into()), Some(Part::Passport));
        assert_eq!(part(|grant| grant.passport_fpr = "p".repeat(600)), Some(Part::Passport));
        assert_eq!(part(|grant| grant.allowed_prefixes_read.push("__".into())), Some(Part::Read));
        assert_eq!(part(|grant| grant.allowed_prefixes_read.push("m".into())), Some(Part::Read));
        assert_eq!(part(|grant| grant.allowed_prefixes_write.push("github::a".into())), Some(Part::Write));
        assert_eq!(part(|grant| grant.allowed_prefixes_write.push(String::new())), Some(Part::Write));
        assert_eq!(part(|grant| grant.allowed_prefixes_read = vec!["a".into(); 129]), Some(Part::Read));
        assert_eq!(part(|grant| grant.allowed_prefixes_write.push("a".repeat(600))), Some(Part::Write));
        assert_eq!(part(|grant| grant.allowed_tool_names.push(String::new())), Some(Part::Tools));
        assert_eq!(part(|grant| grant.allowed_tool_names = vec!["a".into(); 129]), Some(Part::Tools));
        assert_eq!(part(|grant| grant.allowed_secret_ids.push(String::new())), Some(Part::Secrets));
        assert_eq!(part(|grant| grant.allowed_secret_ids = vec!["a".into(); 129]), Some(Part::Secrets));
        assert_eq!(part(|grant| grant.rate_limit_per_min = Some(60_001)), Some(Part::Rate));
        assert_eq!(part(|grant| grant.expires_at_unix_ms = Some(10)), Some(Part::Expiry));
        let grant = Grant::default();
        assert_eq!(part_of(&ExtensionError::GrantExists.to_string(), &grant), Some(Part::Passport));
        assert_eq!(part_of(&ExtensionError::NotFound("x".into()).to_string(), &grant), None);
    }
}
