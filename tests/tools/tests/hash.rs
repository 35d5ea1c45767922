//! The tool `hash` computes SHA-256.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use tools_tests::Tool;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[test]
fn the_published_vectors_come_out() {
    let hash = Tool::shipped("hash");
    let vectors = [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
        ),
    ];
    for (input, digest) in vectors {
        let (returned, output) = hash.hash(input.as_bytes());
        assert_eq!((returned, hex(&output).as_str()), (32, digest), "{input:?}");
    }
}

#[test]
fn every_length_up_to_the_whole_buffer_is_hashed() {
    let hash = Tool::shipped("hash");
    // One instance serves them all, so that no call may leave anything behind for the next.
    let mut running = hash.start();
    let input: Vec<u8> = (0..8192_u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    for len in 0..=input.len() {
        let (returned, output) = running.hash(&input[..len]);
        assert_eq!(returned, 32);
        assert_eq!(hex(&output), hex(&Sha256::digest(&input[..len])), "{len} bytes");
    }
}

#[test]
fn a_length_out_of_range_is_refused() {
    let hash = Tool::shipped("hash");
    assert_eq!(hash.hash(&[0; 8193]).0, -1);
    for len in [8193, i32::MAX, -1, i32::MIN] {
        assert_eq!(hash.start().call("sha256", len), -1, "{len}");
    }
}
