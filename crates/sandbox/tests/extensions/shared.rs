//! Many calls at the same time, and what they share: an engine, places, the slots of a pool.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolshelf_core::extension::envelope::{FactReply, WasmDispatchOutcome};
use toolshelf_core::grant::Grant;
use toolshelf_sandbox::crux::engine::EXTENSION_INSTANCES;
use toolshelf_sandbox::crux::ports::{CallIdentity, FactAccess, FactQuery, NewFact, PortFault};
use toolshelf_sandbox::crux::{Call, CallFault, Extension, Extensions, FailedCall, Limits, Ports};

use crate::world::{Facts, Manner, bare, extensions, grant, identity, prepare};

/// Time enough for whatever else the machine does.
const PATIENT: Limits = Limits { fuel: 1_000_000_000, wall_ms: 120_000, ..Limits::DEFAULT };

fn text(module: &str) -> Vec<u8> {
    wat::parse_str(module).unwrap()
}

fn call(
    extensions: &Extensions,
    extension: &Extension,
    limits: Limits,
) -> Result<WasmDispatchOutcome, FailedCall> {
    let identity = identity("p_alice", "req-1");
    extensions.call(extension, Call { identity, args: json!({}), grant: None, ports: bare(), limits })
}

/// Logs the passport, works for a while, reads the fact of the entity that the passport names, and answers both.
const WHO_AM_I: &str = r#"(module
  (import "crux" "log" (func $log (param i32 i32 i32 i32)))
  (import "crux" "current_passport_json" (func $passport (param i32 i32) (result i32)))
  (import "crux" "read_fact" (func $read (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 3)
  (data (i32.const 130000) "{\"result\":[")
  (data (i32.const 130100) "fact")
  (func (export "extension_call") (param $req i32) (param $len i32) (param $out i32) (param $cap i32) (result i32)
    (local $at i32) (local $passport i32) (local $spin i32)
    ;; Whatever was here before belongs to nobody: the page behind the buffers must be as it was declared.
    (if (i32.load (i32.const 190000)) (then unreachable))
    (i32.store (i32.const 190000) (i32.const 1))
    (memory.copy (local.get $out) (i32.const 130000) (i32.const 11))
    (local.set $at (i32.add (local.get $out) (i32.const 11)))
    (local.set $passport (call $passport (local.get $at) (i32.const 200)))
    (call $log (i32.const 0) (i32.const 0) (local.get $at) (local.get $passport))
    (loop $work
      (local.set $spin (i32.add (local.get $spin) (i32.const 1)))
      (br_if $work (i32.lt_u (local.get $spin) (i32.const 50000))))
    (local.set $at (i32.add (local.get $at) (local.get $passport)))
    (i32.store8 (local.get $at) (i32.const 44))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    ;; {"calling_passport_id":"p_NN"}: the entity is what stands between the last quotes.
    (local.set $at (i32.add (local.get $at) (call $read
      (i32.sub (local.get $at) (i32.const 7)) (i32.const 4)
      (i32.const 130100) (i32.const 4) (local.get $at) (i32.const 500))))
    (i32.store16 (local.get $at) (i32.const 0x7d5d))
    (i32.sub (i32.add (local.get $at) (i32.const 2)) (local.get $out))))"#;

pub(crate) fn nothing_of_each_other() {
    let extensions = extensions(None);
    let extension = prepare(&extensions, &text(WHO_AM_I)).unwrap();
    let one = |number: usize| {
        let passport = format!("p_{number:02}");
        // All ask a store of their own; those with an odd number may not.
        let facts = Facts::new(Manner::Good, &[(&passport, "fact", &format!("of {passport}"), 1.0)]);
        let grant = Grant { allowed_prefixes_read: vec![passport.clone()], ..grant() };
        let ports = Ports { facts: Some(facts), ..bare() };
        let call = Call {
            identity: identity(&passport, &format!("req-{number}")),
            args: json!({"number": number}),
            grant: Some(grant),
            ports,
            limits: PATIENT,
        };
        let outcome = extensions.call(&extension, call).unwrap();
        let wanted = json!({"calling_passport_id": passport});
        assert_eq!(outcome.result[0], wanted);
        assert_eq!(outcome.result[1]["entity"], json!(passport));
        assert_eq!(outcome.result[1]["value"], json!(format!("of {passport}")));
        assert_eq!(outcome.request_id, format!("req-{number}"));
        assert_eq!(outcome.log.len(), 1);
        assert_eq!(serde_json::from_str::<Value>(&outcome.log[0].message).unwrap(), wanted);
    };
    for _ in 0..3 {
        std::thread::scope(|scope| {
            (0..EXTENSION_INSTANCES).for_each(|number| {
                scope.spawn(move || one(number));
            });
        });
    }
}

const PONG: &str = r#"(module (memory (export "memory") 1)
  (data (i32.const 40000) "{\"result\":1}")
  (func (export "extension_call") (param i32 i32 i32 i32) (result i32)
    (memory.copy (local.get 2) (i32.const 40000) (i32.const 12)) (i32.const 12)))"#;

const SPIN: &str = r#"(module (memory (export "memory") 1)
  (func (export "extension_call") (param i32 i32 i32 i32) (result i32) (loop $l (br $l)) unreachable))"#;

pub(crate) fn more_calls_than_places() {
    let extensions = extensions(None);
    let extension = prepare(&extensions, &text(PONG)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..EXTENSION_INSTANCES * 3 {
            scope.spawn(|| assert_eq!(call(&extensions, &extension, PATIENT).unwrap().result, 1));
        }
    });
}

/// With every place taken by a call that spins, one that comes waits, is refused in time where none becomes free, and
/// runs where one does.
pub(crate) fn spinning_beside_others() {
    let extensions = extensions(None);
    let spin = prepare(&extensions, &text(SPIN)).unwrap();
    let pong = prepare(&extensions, &text(PONG)).unwrap();
    let endless = Limits { fuel: u64::MAX / 2, wall_ms: 3_000, ..Limits::DEFAULT };
    std::thread::scope(|scope| {
        let spinning: Vec<_> = (0..EXTENSION_INSTANCES)
            .map(|_| scope.spawn(|| call(&extensions, &spin, endless).unwrap_err().fault))
            .collect();
        // While places are left the short call finds one.
        let short = Limits { wall_ms: 1, ..Limits::DEFAULT };
        loop {
            match call(&extensions, &pong, short).map_err(|failed| failed.fault) {
                Err(CallFault::Busy) => break,
                // A millisecond can be too short on a machine that does much else.
                Ok(_) | Err(CallFault::DeadlineExceeded) => {}
                Err(other) => panic!("{other}"),
            }
            assert!(!spinning.iter().all(|call| call.is_finished()), "the places were never all taken");
        }
        assert_eq!(call(&extensions, &pong, PATIENT).unwrap().result, 1);
        for call in spinning {
            assert_eq!(call.join().unwrap(), CallFault::DeadlineExceeded);
        }
    });
}

/// Lets nobody go on before as many as there are places have come, so that every place is taken by the same module.
#[derive(Debug, Default)]
struct Meeting {
    came: Mutex<usize>,
    all: Condvar,
}

impl FactAccess for Meeting {
    fn read(&self, _: &CallIdentity, _: &str, _: &str) -> Result<Option<FactReply>, PortFault> {
        let mut came = self.came.lock().unwrap();
        *came += 1;
        self.all.notify_all();
        // One that does not come has failed, which is seen elsewhere.
        let waited =
            self.all.wait_timeout_while(came, Duration::from_secs(30), |came| *came < EXTENSION_INSTANCES);
        drop(waited.unwrap());
        Ok(None)
    }

    fn store(&self, _: &CallIdentity, _: NewFact<'_>) -> Result<FactReply, PortFault> {
        Err(PortFault::Refused("only read".to_owned()))
    }

    fn query(&self, _: &CallIdentity, _: FactQuery<'_>) -> Result<Vec<FactReply>, PortFault> {
        Err(PortFault::Refused("only read".to_owned()))
    }
}

const MEET: &str = r#"(import "crux" "read_fact" (func $read (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 20) (table $t 1000 funcref) (global $g (mut i32) (i32.const 0))
  (func $meet (i64.store (i32.const 131100) (i64.const 0x613a3a7365746f6e))
    (drop (call $read (i32.const 131100) (i32.const 8) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))))"#;

/// A slot that is used again shows nothing of the call that had it before, which was one of another module.
pub(crate) fn no_traces() {
    let extensions = extensions(None);
    let writes = format!(
        r#"(module {MEET} (elem declare func $meet)
          (func (export "extension_call") (param i32 i32 i32 i32) (result i32)
            (memory.fill (i32.const 0) (i32.const 170) (i32.const 1310720))
            (table.fill $t (i32.const 0) (ref.func $meet) (i32.const 1000))
            (global.set $g (i32.const 1))
            (call $meet) unreachable))"#
    );
    let looks = format!(
        r#"(module {MEET} (data (i32.const 131072) "{{\"result\":1}}")
          (func (export "extension_call") (param i32 i32 i32 i32) (result i32) (local $at i32)
            (if (global.get $g) (then unreachable))
            (local.set $at (i32.const 999))
            (loop $tables
              (if (i32.eqz (ref.is_null (table.get $t (local.get $at)))) (then unreachable))
              (br_if $tables (local.tee $at (i32.sub (local.get $at) (i32.const 1)))))
            (local.set $at (i32.const 135168))
            (loop $pages
              (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then unreachable))
              (local.set $at (i32.add (local.get $at) (i32.const 8)))
              (br_if $pages (i32.lt_u (local.get $at) (i32.const 1310720))))
            (memory.copy (local.get 2) (i32.const 131072) (i32.const 12))
            (call $meet) (i32.const 12)))"#
    );
    let [writes, looks] = [writes, looks].map(|module| prepare(&extensions, &text(&module)).unwrap());
    let everywhere = |extension: &Extension, check: fn(Result<WasmDispatchOutcome, FailedCall>)| {
        let meeting = Arc::new(Meeting::default());
        std::thread::scope(|scope| {
            for _ in 0..EXTENSION_INSTANCES {
                let ports = Ports { facts: Some(meeting.clone()), ..bare() };
                let identity = identity("p_alice", "req-1");
                let call = Call { identity, args: json!({}), grant: Some(grant()), ports, limits: PATIENT };
                let extensions = &extensions;
                scope.spawn(move || check(extensions.call(extension, call)));
            }
        });
        assert_eq!(*meeting.came.lock().unwrap(), EXTENSION_INSTANCES);
    };
    for _ in 0..3 {
        everywhere(&writes, |ended| assert!(matches!(ended.unwrap_err().fault, CallFault::Trap(_))));
        everywhere(&looks, |ended| assert_eq!(ended.unwrap().result, 1));
    }
}
