//! Forged, foreign and broken addresses.

use futures::FutureExt as _;
use serde_json::{Value, json};
use toolshelf_core::address::{Sealed, address};
use toolshelf_core::refusal::Code;
use toolshelf_host::{Caller, TaskHostConfig};

use crate::world::*;

#[test]
fn no_forged_address_is_accepted() {
    let world = World::new();
    let good = [world.task("c1"), world.task("c2")];
    let mut numbers = Numbers(0x5eed);
    let ann = Caller::new("ann", "");
    let mut refused = 0;
    for round in 0.. {
        if refused == 100_000 {
            break;
        }
        let mut bytes = good[round % 2].clone().into_bytes();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(bytes.len().max(1));
            if bytes.is_empty() {
                break;
            }
            match numbers.below(6) {
                0 => bytes[at] ^= 1 << numbers.below(7),
                1 => bytes[at] = b"0123456789abcdefABCDEF_-.=+/ \0"[numbers.below(30)],
                2 => drop(bytes.remove(at)),
                3 => bytes.insert(at, bytes[at]),
                4 => bytes.truncate(at.max(1)),
                // The MAC of the other address.
                _ => {
                    let other = good[(round + 1) % 2].as_bytes();
                    let mac = bytes.len().saturating_sub(64);
                    bytes.truncate(mac);
                    bytes.extend(&other[other.len() - 64..]);
                }
            }
        }
        let Ok(forged) = String::from_utf8(bytes) else { continue };
        if good.contains(&forged) {
            continue;
        }
        let args = json!({"address": forged});
        let code = code(&world.host.call("task_status", &args, &ann).now_or_never().unwrap());
        assert!(
            matches!(code, Code::InvalidTaskAddress | Code::TaskOwnerMismatch),
            "{forged} was answered with {code}"
        );
        refused += 1;
    }
    for address in good {
        world.view(&address);
    }
}

#[test]
fn an_address_is_good_for_its_owner_alone() {
    let world = World::new();
    let address = world.task("c1");
    for tool in ["task_status", "cancel_task"] {
        for owner in ["bob", "ann ", "an", "ann\0"] {
            let answer =
                world.call_at(&world.host, tool, json!({"address": address}), Caller::new(owner, ""));
            assert_eq!(code(&answer), Code::TaskOwnerMismatch, "{owner:?}");
        }
    }
    assert_eq!(code(&world.status_at(&world.other_key(), &address)), Code::TaskOwnerMismatch);
}

#[test]
fn the_address_is_the_only_argument() {
    let world = World::new();
    let address = world.task("c1");
    let bad: [Value; 6] = [
        json!(null),
        json!({}),
        json!([address]),
        json!({"address": 7}),
        json!({"address": address, "force": true}),
        json!({"address": "task_x"}),
    ];
    for tool in ["task_status", "cancel_task"] {
        for args in &bad {
            let answer = world.call_at(&world.host, tool, args.clone(), Caller::new("ann", ""));
            assert_eq!(code(&answer), Code::InvalidTaskAddress, "{args}");
        }
    }
}

#[test]
fn a_good_mac_over_another_environment_is_told_from_a_bad_one() {
    // Two hosts with one key, as after a change of the environment's name.
    let world = World::new();
    let renamed = World::with(TaskHostConfig { environment: "env_browser_other".into(), ..browser() });
    let address = world.task("c1");
    assert_eq!(code(&renamed.status_at(&renamed.host, &address)), Code::TaskEnvironmentChanged);
    // The same environment, but a journal that was cleared.
    let cleared = World::new();
    assert_eq!(code(&cleared.status_at(&cleared.host, &address)), Code::TaskNotFound);
}

#[test]
fn an_address_carries_no_key_and_no_owner() {
    let world = World::new();
    let text = world.delegate_as("secret-owner", "secret-call", "secret-task").unwrap();
    let text = &text.task().unwrap().address;
    let sealed = Sealed::split(text).unwrap();
    let locator = format!("{:?}", sealed.locator().unwrap());
    assert!(!locator.contains("secret"), "{locator}");
    assert!(locator.contains("loc_"), "{locator}");
    assert_eq!(address(sealed.payload, &sealed.mac), *text);
}
