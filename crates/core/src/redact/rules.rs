//! The tables: which names, headers and published shapes mark a secret.

/// Digits.
pub(super) const DIGIT: u8 = 1;
/// Lower-case letters.
pub(super) const LOWER: u8 = 1 << 1;
/// Upper-case letters.
pub(super) const UPPER: u8 = 1 << 2;
/// Digits and `a` to `f`.
pub(super) const HEX: u8 = 1 << 3;
/// `-` and `_`.
pub(super) const DASH: u8 = 1 << 4;
/// `.`
pub(super) const DOT: u8 = 1 << 5;
/// `+`, `/` and `=`.
pub(super) const BASE64: u8 = 1 << 6;
/// `~`
pub(super) const TILDE: u8 = 1 << 7;
/// Letters and digits.
pub(super) const ALNUM: u8 = DIGIT | LOWER | UPPER;
/// What base64url is written in.
pub(super) const URL64: u8 = ALNUM | DASH;

/// The sets that `byte` is in.
pub(super) const fn class(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => DIGIT | HEX,
        b'a'..=b'f' => LOWER | HEX,
        b'g'..=b'z' => LOWER,
        b'A'..=b'Z' => UPPER,
        b'-' | b'_' => DASH,
        b'.' => DOT,
        b'+' | b'/' | b'=' => BASE64,
        b'~' => TILDE,
        _ => 0,
    }
}

/// What is longer is secret without having to look random. It bounds what a look is worth.
pub(super) const RANDOM_MAX: usize = 256;

/// A literal and the run of characters behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) lead: &'static str,
    pub(super) set: u8,
    pub(super) min: usize,
    /// A longer run is something else; `usize::MAX` where any length goes.
    pub(super) max: usize,
}

/// A published shape: a first part, and those that must follow it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) first: Part,
    pub(super) rest: &'static [Part],
    /// Without a digit it is a word of some program.
    pub(super) digit: bool,
}

const fn run(lead: &'static str, set: u8, min: usize, max: usize) -> Part {
    Part { lead, set, min, max }
}

/// At least `min` characters behind `lead`.
const fn from(lead: &'static str, set: u8, min: usize) -> Shape {
    Shape { first: run(lead, set, min, usize::MAX), rest: &[], digit: false }
}

/// Like [`from`], but the value must hold a digit.
const fn random(lead: &'static str, set: u8, min: usize) -> Shape {
    Shape { first: run(lead, set, min, usize::MAX), rest: &[], digit: true }
}

const fn parts(first: Part, rest: &'static [Part], digit: bool) -> Shape {
    Shape { first, rest, digit }
}

/// Shapes that begin with a letter. Those of the reference facts, B7, stand first.
pub(super) const SHAPES: &[Shape] = &[
    // OpenAI, Anthropic and all who name their keys alike: sk-, sk-ant-, sk-proj-, sk-live-, sk-or-v1-, ...
    from("sk-", URL64, 6),
    // Stripe and those who name their keys alike.
    from("sk_live_", URL64, 16),
    from("sk_test_", URL64, 16),
    from("rk_live_", URL64, 16),
    from("rk_test_", URL64, 16),
    // Google: API keys and OAuth access tokens.
    from("AIza", URL64, 6),
    from("ya29.", URL64 | DOT, 20),
    from("glpat-", URL64 | DOT, 20),
    from("npm_", ALNUM, 36),
    // Ids of AWS keys.
    from("A3T", UPPER | DIGIT, 17),
    from("AKIA", UPPER | DIGIT, 16),
    from("AGPA", UPPER | DIGIT, 16),
    from("AIDA", UPPER | DIGIT, 16),
    from("AROA", UPPER | DIGIT, 16),
    from("AIPA", UPPER | DIGIT, 16),
    from("ANPA", UPPER | DIGIT, 16),
    from("ANVA", UPPER | DIGIT, 16),
    from("ASIA", UPPER | DIGIT, 16),
    // GitHub. Installation tokens may hold a JWT.
    from("ghp_", URL64, 16),
    from("gho_", URL64, 16),
    from("ghu_", URL64, 16),
    from("ghs_", URL64 | DOT, 16),
    from("ghr_", URL64, 16),
    from("github_pat_", URL64, 22),
    // Slack.
    from("xoxb-", URL64, 8),
    from("xoxa-", URL64, 8),
    from("xoxp-", URL64, 8),
    from("xoxr-", URL64, 8),
    from("xoxs-", URL64, 8),
    JWT,
    // From here on: what is published beyond B7. Our own bearer first.
    from("vbx_", URL64 | DOT, 12),
    from("xoxc-", URL64, 8),
    from("xoxd-", URL64 | BASE64, 8),
    from("xoxe-", URL64, 8),
    from("xoxe.xoxb-", URL64, 8),
    from("xoxe.xoxp-", URL64, 8),
    from("xapp-", URL64, 16),
    from("hooks.slack.com/services/", URL64 | BASE64, 20),
    from("hooks.slack.com/workflows/", URL64 | BASE64, 20),
    random("discord.com/api/webhooks/", URL64 | BASE64, 40),
    random("discordapp.com/api/webhooks/", URL64 | BASE64, 40),
    // GitLab.
    from("gldt-", URL64, 20),
    from("glrt-", URL64 | DOT, 20),
    from("glrtr-", URL64 | DOT, 20),
    from("glcbt-", URL64 | DOT, 20),
    from("glptt-", URL64, 20),
    from("glft-", URL64, 20),
    from("glffct-", URL64, 20),
    from("glimt-", URL64, 20),
    from("glagent-", URL64, 20),
    from("gloas-", URL64, 20),
    from("glsoat-", URL64, 20),
    from("glwt-", URL64, 20),
    from("GR1348941", URL64, 20),
    // Payments and shops.
    from("sk_prod_", URL64, 16),
    from("rk_prod_", URL64, 16),
    random("whsec_", ALNUM | BASE64, 24),
    random("shpat_", HEX | UPPER, 32),
    random("shpss_", HEX | UPPER, 32),
    random("shpca_", HEX | UPPER, 32),
    random("shppa_", HEX | UPPER, 32),
    random("sq0atp-", URL64, 22),
    random("sq0csp-", URL64, 43),
    // Google OAuth: client secrets and refresh tokens.
    from("GOCSPX-", URL64, 20),
    parts(run("1", 0, 0, 0), &[run("//0", URL64, 32, usize::MAX)], true),
    // Packages.
    from("pypi-", URL64, 32),
    random("rubygems_", HEX, 48),
    random("dckr_pat_", URL64, 20),
    random("dckr_oat_", URL64, 20),
    random("oy2", LOWER | DIGIT, 43),
    random("cio", ALNUM, 32),
    // Models.
    from("hf_", ALNUM, 30),
    from("api_org_", ALNUM, 34),
    random("gsk_", ALNUM, 40),
    random("xai-", ALNUM, 40),
    random("pplx-", ALNUM, 40),
    random("nvapi-", URL64, 40),
    random("r8_", ALNUM, 32),
    random("lsv2_pt_", ALNUM | DASH, 32),
    random("lsv2_sk_", ALNUM | DASH, 32),
    // Mail and messages.
    parts(run("SG.", URL64, 16, 64), &[run(".", URL64, 32, usize::MAX)], false),
    random("xkeysib-", HEX | DASH, 64),
    parts(run("re_", ALNUM, 8, 8), &[run("_", ALNUM, 20, 40)], true),
    parts(run("key-", HEX, 32, 32), &[], true),
    parts(run("SK", HEX, 32, 32), &[], true),
    DISCORD_M,
    DISCORD_N,
    DISCORD_O,
    // Clouds and hosts.
    from("dop_v1_", HEX, 64),
    from("doo_v1_", HEX, 64),
    from("dor_v1_", HEX, 64),
    random("cfut_", ALNUM, 40),
    random("cfat_", ALNUM, 40),
    random("cfk_", ALNUM, 40),
    parts(run("v1.0-", HEX, 24, 24), &[run("-", HEX, 100, 200)], true),
    random("HRKU-", URL64, 36),
    random("fm2_", URL64 | BASE64, 32),
    random("nfp_", ALNUM, 36),
    random("vcp_", ALNUM, 24),
    random("sbp_", HEX, 40),
    random("sb_secret_", URL64, 20),
    random("pscale_tkn_", URL64 | DOT, 32),
    random("pscale_pw_", URL64 | DOT, 32),
    random("tskey-", URL64, 20),
    random("LTAI", ALNUM, 17),
    random("dapi", HEX, 32),
    // Vaults, automation, observation.
    random("hvs.", URL64, 24),
    random("hvb.", URL64, 24),
    random("dp.pt.", ALNUM, 40),
    random("dp.st.", URL64 | DOT, 40),
    random("ops_ey", URL64, 100),
    random("pul-", HEX, 40),
    random("glsa_", ALNUM | DASH, 32),
    random("glc_ey", ALNUM | BASE64, 32),
    random("NRAK-", ALNUM, 27),
    random("sntrys_", URL64 | BASE64, 40),
    random("sntryu_", HEX, 64),
    random("phx_", ALNUM, 40),
    // Work tools.
    random("ATATT3", URL64 | BASE64, 100),
    random("ATCTT3", URL64 | BASE64, 100),
    random("ATBB", ALNUM, 32),
    random("lin_api_", ALNUM, 40),
    random("ntn_", ALNUM, 40),
    random("secret_", ALNUM, 43),
    random("figd_", URL64, 40),
    random("PMAK-", HEX | DASH, 59),
    parts(run("pat", ALNUM, 14, 14), &[run(".", HEX, 64, 64)], true),
    // Keys of age.
    from("AGE-SECRET-KEY-1", UPPER | DIGIT, 40),
    from("AGE-SECRET-KEY-PQ-1", UPPER | DIGIT, 40),
];

/// Three parts or more; in an encrypted one the third may be empty.
const JWT: Shape = parts(
    run("ey", URL64, 8, usize::MAX),
    &[run(".ey", URL64, 8, usize::MAX), run(".", URL64 | DOT, 0, usize::MAX)],
    false,
);

/// A bot's token begins with its number in base64, and a number's first digits give one of three letters.
const DISCORD_M: Shape = parts(run("M", URL64, 22, 28), DISCORD, true);
const DISCORD_N: Shape = parts(run("N", URL64, 22, 28), DISCORD, true);
const DISCORD_O: Shape = parts(run("O", URL64, 22, 28), DISCORD, true);
const DISCORD: &[Part] = &[run(".", URL64, 6, 7), run(".", URL64, 27, 45)];

/// The one shape that begins with any digit: a Telegram bot's number and its token.
pub(super) const TELEGRAM: Shape = parts(run("", DIGIT, 8, 10), &[run(":AA", URL64, 33, 33)], true);

/// For each first byte the first shape that begins with it, and for each shape the next one: `None` ends the chain.
pub(super) const CHAINS: ([Option<u8>; 128], [Option<u8>; SHAPES.len()]) = {
    let (mut heads, mut nexts) = ([None; 128], [None; SHAPES.len()]);
    let mut at = SHAPES.len();
    while at > 0 {
        at -= 1;
        let first = SHAPES[at].first.lead.as_bytes()[0] as usize;
        nexts[at] = heads[first];
        heads[first] = Some(at as u8);
    }
    (heads, nexts)
};

/// Names of environment variables that are secret as a whole.
pub(super) const SECRET_VARIABLES: [&str; 5] = [
    "GEMINI_API_KEY",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "VOICEBOX_HOST_TOKEN",
    "VOICEBOX_SESSION_TOKEN",
];

/// A name that holds one of these, in any case, names a secret.
pub(super) const SECRET_WORDS: [&str; 10] =
    ["auth", "headers", "cookie", "password", "passwd", "secret", "token", "credential", "key", "signature"];

/// How the value of a name must look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Whatever it is, it is secret.
    Any,
    /// At least so many characters, letters and digits among them; the name must stand as a word.
    Random(usize),
    /// The rest of the line is secret.
    Line,
}

/// What a name ends with, in any case, where a value is assigned to it.
pub(super) const NAME_ENDS: [(&str, Wanted); 16] = [
    ("key", Wanted::Any),
    ("password", Wanted::Any),
    ("passwd", Wanted::Any),
    ("secret", Wanted::Any),
    ("token", Wanted::Any),
    ("credential", Wanted::Any),
    ("signature", Wanted::Any),
    ("authorization", Wanted::Line),
    ("cookie", Wanted::Line),
    ("passphrase", Wanted::Random(8)),
    ("passcode", Wanted::Random(8)),
    ("pass", Wanted::Random(8)),
    ("pwd", Wanted::Random(8)),
    ("credentials", Wanted::Random(16)),
    ("auth", Wanted::Random(16)),
    ("sig", Wanted::Random(16)),
];

/// Values that no secret has: literals, names of types, and words before a call.
pub(super) const PLAIN_VALUES: [&str; 18] = [
    "null",
    "nil",
    "none",
    "undefined",
    "true",
    "false",
    "string",
    "str",
    "number",
    "boolean",
    "bool",
    "int",
    "any",
    "unknown",
    "Option<String>",
    "[]byte",
    "await",
    "new",
];
