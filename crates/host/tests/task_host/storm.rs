//! Everything at once, in an order that nobody chose: two lives, a journal that fails now and then, executors that
//! settle early, late or not when asked.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use futures::channel::oneshot;
use serde_json::json;
use toolshelf_core::task::TaskRecord;
use toolshelf_host::task_ports::RunFault;
use toolshelf_host::{Caller, Journal as _};

use crate::world::*;

/// The record as it is written.
fn written(world: &World, address: &str) -> TaskRecord {
    world.journal.memory.record(address).now_or_never().unwrap().unwrap().unwrap()
}

fn storm(seed: u64) {
    let world = World::new();
    let lives = [world.host.clone(), world.other_life("boot_2")];
    let mut numbers = Numbers(seed);
    let (mut addresses, mut settles, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    let mut ended: BTreeMap<String, TaskRecord> = BTreeMap::new();
    for step in 0..300 {
        let life = &lives[numbers.below(2)];
        let of_a_task = |addresses: &[String], numbers: &mut Numbers| {
            (!addresses.is_empty()).then(|| json!({"address": addresses[numbers.below(addresses.len())]}))
        };
        match numbers.below(9) {
            0 | 1 => {
                let (settle, held) = oneshot::channel();
                settles.push(settle);
                world.script(if numbers.below(3) == 0 { Script::Obeys } else { Script::Held(held) });
                let args = json!({"agent": "hash", "task": "do it"});
                let caller = Caller::new("ann", format!("c{}", numbers.below(40)));
                calls.push(world.start_at(life, "delegate_task", args, caller));
            }
            2 => {
                if let Some(args) = of_a_task(&addresses, &mut numbers) {
                    world.start_at(life, "cancel_task", args, Caller::new("ann", ""));
                }
            }
            3 | 4 => {
                if let Some(args) = of_a_task(&addresses, &mut numbers) {
                    world.start_at(life, "task_status", args, Caller::new("ann", ""));
                }
            }
            5 if !settles.is_empty() => {
                let answer = match numbers.below(3) {
                    0 => Ok("done".to_owned()),
                    1 => Err(RunFault::Cancelled),
                    _ => Err(RunFault::Failed),
                };
                let settle: Settle = settles.swap_remove(numbers.below(settles.len()));
                let _ = settle.send(answer);
                world.settle();
            }
            6 => world.journal.all_fail.set(numbers.below(4) == 0),
            7 => world.journal.failing.borrow_mut().push_back(numbers.below(2) == 0),
            _ => world.pass([1.0, 20.0, 1_600.0, 31_000.0][numbers.below(4)]),
        }
        calls.retain(|call| {
            let Some(answer) = call.take() else { return true };
            addresses.extend(answer.iter().filter_map(|reply| Some(reply.task()?.address.clone())));
            false
        });
        assert!(lives.iter().all(|life| life.active_tasks() <= 4));
        for address in addresses.iter().filter(|_| step % 10 == 0) {
            let record = written(&world, address);
            if record.state.is_terminal() {
                let first = ended.entry(address.clone()).or_insert_with(|| record.clone());
                assert_eq!(*first, record, "an end is an end");
            }
        }
    }

    // Calm: the journal takes everything, every executor settles.
    world.journal.all_fail.set(false);
    world.journal.failing.borrow_mut().clear();
    settles.clear();
    world.pass(120_000.0);
    world.shared.scripts.borrow_mut().clear();
    for life in &lives {
        for address in &addresses {
            let reply = world.status_at(life, address).unwrap();
            let view = reply.task().unwrap();
            let record = written(&world, address);
            assert!(record.state.is_terminal() && view.state == record.state, "{view:?} {record:?}");
            assert!(!view.stale);
        }
        let life = format!("{life:?}");
        assert!(life.contains("active: 0, in_memory: 0"), "{life}");
    }
    assert!(!addresses.is_empty());
}

#[test]
fn whatever_happens_in_whatever_order_ends_are_ends_and_places_come_back() {
    for seed in 1..=60 {
        storm(seed * 0x9e37_79b9);
    }
}
