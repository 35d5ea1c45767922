//! Code in memory and on disk, and modules that are costly to compile.

use std::fs;
use std::path::Path;

use serde_json::json;
use toolshelf_core::Digest;
use toolshelf_sandbox::CodeCache;
use toolshelf_sandbox::crux::{Call, CallFault, Extensions, Limits, ModuleBytes};

use crate::world::{bare, extensions, identity, prepare};

fn module(answer: &str) -> Vec<u8> {
    let text = format!(
        r#"(module (memory (export "memory") 1) (data (i32.const 40000) "{{\"result\":\"{answer}\"}}")
          (func (export "extension_call") (param i32 i32 i32 i32) (result i32)
            (memory.copy (local.get 2) (i32.const 40000) (i32.const 14)) (i32.const 14)))"#
    );
    wat::parse_str(text).unwrap()
}

fn answer(extensions: &Extensions, module: &[u8]) -> String {
    let extension = prepare(extensions, module).unwrap();
    let call = Call {
        identity: identity("p_alice", "req-1"),
        args: json!({}),
        grant: None,
        ports: bare(),
        limits: Limits { wall_ms: 60_000, ..Limits::DEFAULT },
    };
    extensions.call(&extension, call).unwrap().result.as_str().unwrap().to_owned()
}

fn cache(folder: &Path) -> CodeCache {
    CodeCache::open(&folder.join("code"), &folder.join("key")).unwrap()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder.join("code")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

pub(crate) fn kept() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (module("a"), module("b"));
    let first = extensions(Some(&cache(folder.path())));
    assert!(first.known(&ModuleBytes::hash(a.clone())).is_none());
    assert_eq!(answer(&first, &a), "a");
    assert_eq!(answer(&first, &b), "b");
    assert!(first.known(&ModuleBytes::hash(a.clone())).is_some());
    let written: Vec<_> =
        files(folder.path()).iter().map(|file| fs::metadata(file).unwrap().modified().unwrap()).collect();
    assert_eq!(written.len(), 2);
    drop(first);
    // Another life of the host finds the code, and does not write it again.
    let second = extensions(Some(&cache(folder.path())));
    assert_eq!(answer(&second, &a), "a");
    let now: Vec<_> =
        files(folder.path()).iter().map(|file| fs::metadata(file).unwrap().modified().unwrap()).collect();
    assert_eq!(now, written);
}

pub(crate) fn apart() {
    let folder = tempfile::tempdir().unwrap();
    let a = module("a");
    let shelf = cache(folder.path());
    // What a shelf's worker has made of the same bytes is for another engine.
    shelf.store(Digest::of(&a), b"code for a process that is shut in");
    assert!(shelf.for_extensions().unwrap().load(Digest::of(&a)).is_none());
    let extensions = extensions(Some(&shelf));
    assert_eq!(answer(&extensions, &a), "a");
    assert_eq!(shelf.load(Digest::of(&a)).unwrap(), b"code for a process that is shut in");
    assert_eq!(files(folder.path()).len(), 2);
}

pub(crate) fn forged() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (module("a"), module("b"));
    let first = extensions(Some(&cache(folder.path())));
    assert_eq!((answer(&first, &a), answer(&first, &b)), ("a".to_owned(), "b".to_owned()));
    drop(first);
    // The code of one module under the name of the other, and the other's with one bit changed.
    let [one, other] = &files(folder.path())[..] else { panic!("two files") };
    let mut bytes = fs::read(one).unwrap();
    fs::write(one, fs::read(other).unwrap()).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(other, bytes).unwrap();
    let second = extensions(Some(&cache(folder.path())));
    assert_eq!((answer(&second, &a), answer(&second, &b)), ("a".to_owned(), "b".to_owned()));
}

pub(crate) fn bombs() {
    let extensions = extensions(None);
    // Two functions, each as long as one may be.
    // local 0 = (local 0 + 77) * (local 0 ^ 3)
    let step = [0x20, 0, 0x41, 0xcd, 0, 0x6a, 0x20, 0, 0x41, 3, 0x73, 0x6c, 0x21, 0];
    let body = [&[1, 1, 0x7f][..], &step.repeat(540_000), &[0x0b]].concat();
    let refused = prepare(&extensions, &with_bodies(&[body.clone(), body])).unwrap_err();
    assert!(matches!(refused, CallFault::CompileBudget(_)), "{refused}");
    assert!(refused.to_string().starts_with("compile error: over budget: "), "{refused}");
    // Deep nesting: however it ends, it has a name, and the next module is compiled.
    let mut body = vec![0];
    (0..200_000).for_each(|_| body.extend([0x02, 0x40]));
    body.extend(vec![0x0b; 200_000]);
    body.push(0x0b);
    if let Err(refused) = prepare(&extensions, &with_bodies(&[body])) {
        let named = matches!(refused, CallFault::CompileBudget(_) | CallFault::Compile(_));
        assert!(named, "{refused}");
    }
    assert_eq!(answer(&extensions, &module("a")), "a");
}

/// A module with functions that take and give nothing, and have these bodies.
fn with_bodies(bodies: &[Vec<u8>]) -> Vec<u8> {
    fn number(mut value: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let byte = (value & 0x7f) as u8;
            value >>= 7;
            bytes.push(if value == 0 { byte } else { byte | 0x80 });
            if value == 0 {
                return bytes;
            }
        }
    }
    fn sized(bytes: &[u8]) -> Vec<u8> {
        [&number(bytes.len()), bytes].concat()
    }
    let count = number(bodies.len());
    let functions = [&count[..], &vec![0; bodies.len()]].concat();
    let code = [&count[..], &bodies.iter().flat_map(|body| sized(body)).collect::<Vec<_>>()].concat();
    [b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03", &sized(&functions)[..], b"\x0a", &sized(&code)].concat()
}

pub(crate) fn too_large() {
    let extensions = extensions(None);
    let refused = prepare(&extensions, &vec![0; 16 * 1024 * 1024 + 1]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "compile error: over budget: the module is 16777217 bytes, above 16777216"
    );
}
