//! Secrets at rest.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

const SECRET: &[u8] = b"s3cret-of-the-house";

fn open(data: &Path) -> Vault {
    Vault::of(data, KeyPlace::File)
}

fn vault() -> (tempfile::TempDir, Vault) {
    let dir = tempfile::tempdir().unwrap();
    let vault = open(dir.path());
    (dir, vault)
}

fn edit(vault: &Vault, change: impl FnOnce(&mut VaultFile)) {
    let mut file = vault.read().unwrap().unwrap();
    change(&mut file);
    vault.write(&file).unwrap();
}

#[test]
fn a_secret_is_kept_listed_replaced_and_forgotten() {
    let (dir, vault) = vault();
    vault.set("api.key", b"old", 1).unwrap();
    vault.set("api.key", SECRET, 2).unwrap();
    vault.set("a", b"x", 3).unwrap();
    // Another program opens the same vault.
    let other = open(dir.path());
    assert_eq!(*other.get("api.key").unwrap(), SECRET);
    let ids: Vec<_> = other.list().unwrap().into_iter().map(|info| (info.id, info.set_at_unix_ms)).collect();
    assert_eq!(ids, [("a".to_owned(), 3), ("api.key".to_owned(), 2)]);
    other.remove("api.key").unwrap();
    assert!(matches!(vault.get("api.key"), Err(VaultError::Unknown(id)) if id == "api.key"));
    assert!(matches!(vault.remove("api.key"), Err(VaultError::Unknown(_))));
}

#[test]
fn nothing_on_disk_tells_a_secret_and_only_the_owner_reads_it() {
    let (dir, vault) = vault();
    vault.set("k", SECRET, 1).unwrap();
    vault.set("l", SECRET, 1).unwrap();
    for name in ["vault.json", "vault.key"] {
        let path = dir.path().join(name);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        let bytes = fs::read(&path).unwrap();
        for form in [SECRET.to_vec(), BASE64_STANDARD.encode(SECRET).into_bytes()] {
            assert!(!bytes.windows(form.len()).any(|window| window == form), "{name}");
        }
    }
    let file = vault.read().unwrap().unwrap();
    assert_ne!(file.secrets["k"].sealed, file.secrets["l"].sealed);
    assert!(!format!("{vault:?}").contains("s3cret"));
}

#[test]
fn a_changed_entry_is_named_and_never_opened() {
    type Change = fn(&mut VaultFile);
    let cases: [(&str, Change); 5] = [
        ("swapped", |file| {
            let mut other = file.secrets.remove("b").unwrap();
            std::mem::swap(&mut other, file.secrets.get_mut("a").unwrap());
        }),
        ("one bit", |file| {
            let entry = file.secrets.get_mut("a").unwrap();
            let mut bytes = BASE64_STANDARD.decode(&entry.sealed).unwrap();
            bytes[0] ^= 1;
            entry.sealed = BASE64_STANDARD.encode(bytes);
        }),
        ("cut", |file| file.secrets.get_mut("a").unwrap().sealed = "AAAA".to_owned()),
        ("nonce", |file| file.secrets.get_mut("a").unwrap().nonce = BASE64_STANDARD.encode([7; NONCE_BYTES])),
        ("no base64", |file| file.secrets.get_mut("a").unwrap().nonce = "?".to_owned()),
    ];
    for (name, change) in cases {
        let (_dir, vault) = vault();
        vault.set("a", b"first", 1).unwrap();
        vault.set("b", b"second", 1).unwrap();
        edit(&vault, change);
        assert!(matches!(vault.get("a"), Err(VaultError::Tampered(id)) if id == "a"), "{name}");
    }
}

#[test]
fn another_key_and_a_broken_file_are_errors_by_name() {
    let (dir, vault) = vault();
    vault.set("a", SECRET, 1).unwrap();
    files::write_whole(&dir.path().join("vault.key"), &[7; 32]).unwrap();
    let other = open(dir.path());
    assert!(matches!(other.get("a"), Err(VaultError::WrongKey(_))));
    // A vault of another key is not written over either.
    assert!(matches!(other.set("b", SECRET, 1), Err(VaultError::WrongKey(_))));
    assert_eq!(*vault.get("a").unwrap(), SECRET);
    fs::write(dir.path().join("vault.json"), "{").unwrap();
    assert!(matches!(vault.set("a", SECRET, 1), Err(VaultError::Malformed { .. })));
    assert_eq!(fs::read(dir.path().join("vault.json")).unwrap(), b"{");
}

#[test]
fn ids_lengths_and_numbers_are_bounded() {
    let (_dir, vault) = vault();
    for id in ["", "a/b", "ä", "a b", &"a".repeat(SECRET_ID_MAX_BYTES + 1)] {
        assert!(matches!(vault.set(id, SECRET, 1), Err(VaultError::BadId)), "{id}");
        assert!(matches!(vault.get(id), Err(VaultError::Unknown(_))), "{id}");
    }
    for secret in [&[][..], &vec![1; SECRET_MAX_BYTES + 1]] {
        assert!(matches!(vault.set("a", secret, 1), Err(VaultError::BadLength)));
    }
    vault.set("a", &vec![1; SECRET_MAX_BYTES], 1).unwrap();
    edit(&vault, |file| {
        for number in 1..VAULT_MAX_SECRETS {
            let sealed = Sealed { nonce: String::new(), sealed: String::new(), set_at_unix_ms: 0 };
            file.secrets.insert(format!("s{number}"), sealed);
        }
    });
    assert!(matches!(vault.set("one-more", SECRET, 1), Err(VaultError::Full)));
    vault.set("a", SECRET, 1).unwrap();
}

#[test]
fn a_key_that_is_gone_is_named_and_no_other_is_made() {
    let (dir, vault) = vault();
    vault.set("a", SECRET, 1).unwrap();
    fs::remove_file(dir.path().join("vault.key")).unwrap();
    let other = open(dir.path());
    assert!(matches!(other.get("a"), Err(VaultError::Key(KeyFault::Gone { .. }))));
    assert!(matches!(other.set("b", SECRET, 1), Err(VaultError::Key(KeyFault::Gone { .. }))));
    assert!(!dir.path().join("vault.key").exists());
    // What needs no key works.
    assert_eq!(other.list().unwrap().len(), 1);
    other.remove("a").unwrap();
}

#[test]
fn programs_that_set_at_the_same_time_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let data = dir.path();
            scope.spawn(move || open(data).set(&format!("s{number}"), SECRET, 1).unwrap());
        }
    });
    assert_eq!(open(dir.path()).list().unwrap().len(), 8);
}
