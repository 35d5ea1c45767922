//! Pairs of texts that are hard on a diff, the same in every run.

/// Two texts and what is hard about them.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is hard about them.
    pub name: &'static str,
    /// The old text.
    pub a: Vec<u8>,
    /// The new text.
    pub b: Vec<u8>,
}

/// The most bytes a text has.
const FULL: usize = 65_536;

/// Inputs as large as the ABI allows that leave a diff little to hold on to.
#[must_use]
pub fn hard_cases() -> Vec<Case> {
    let mut dice = Dice(88_172_645);
    let mut random = |letters: u8| full(|| vec![b'!' + dice.roll(letters), b'\n']);
    let two_letters = case("two letters", random(2), random(2));
    let many_letters = case("as many lines of each kind as a row has words", random(64), random(64));
    let more_letters = case("a few kinds more", random(70), random(70));
    let all_letters = case("200 letters", random(200), random(200));
    let mut mostly_empty = |other: u8| {
        full(|| if dice.roll(other) > 0 { vec![b'\n'] } else { vec![b'a' + dice.roll(2), b'\n'] })
    };
    vec![
        two_letters,
        many_letters,
        more_letters,
        all_letters,
        case("half the lines empty", mostly_empty(2), mostly_empty(2)),
        case("most lines empty", mostly_empty(10), mostly_empty(10)),
        case("only empty lines against some others", vec![b'\n'; FULL], mostly_empty(2)),
        case("only empty lines, one fewer", vec![b'\n'; FULL], vec![b'\n'; FULL - 1]),
        case("all lines distinct", numbered(0..10_000), numbered(20_000..30_000)),
        case("the same lines in reverse", numbered(0..10_900), numbered((0..10_900).rev())),
        case("more edits than fit", b"x\nc\n".repeat(16_384), b"c\n".repeat(16_384)),
        case("more edits on both sides than fit", b"x\nc\n".repeat(16_384), b"c\ny\n".repeat(16_384)),
        case("two rhythms", b"a\nb\n".repeat(16_384), b"b\nb\na\n".repeat(10_922)),
        case("one line each", vec![b'a'; FULL], vec![b'b'; FULL]),
        case("nothing against everything", Vec::new(), vec![b'\n'; FULL]),
        case("lines with many neighbours in the trie", full(|| all_bytes(1)), full(|| all_bytes(2))),
    ]
}

fn case(name: &'static str, a: Vec<u8>, b: Vec<u8>) -> Case {
    assert!(a.len() <= FULL && b.len() <= FULL, "{name}");
    Case { name, a, b }
}

/// A text of as many whole lines as there is room for.
fn full(mut line: impl FnMut() -> Vec<u8>) -> Vec<u8> {
    let mut text = Vec::with_capacity(FULL);
    loop {
        let line = line();
        if text.len() + line.len() > FULL {
            return text;
        }
        text.extend(line);
    }
}

fn numbered(numbers: impl Iterator<Item = u32>) -> Vec<u8> {
    numbers.flat_map(|number| format!("{number}\n").into_bytes()).collect()
}

/// Every byte as the beginning of a line.
fn all_bytes(len: usize) -> Vec<u8> {
    (0..=255).rev().flat_map(|byte| [vec![byte; len], b"\n".to_vec()].concat()).collect()
}

/// Xorshift: random enough for a text, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u8) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u8::try_from((self.0 >> 24) % u64::from(sides)).expect("less than the sides")
    }
}
