//! From an environment to its host.

use std::rc::Rc;

use serde_json::json;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::Code;
use toolshelf_core::task::TaskState;
use toolshelf_host::{Caller, Dispatcher};

use crate::world::*;

#[test]
fn an_environment_is_served_by_the_host_of_its_placement() {
    let world = World::new();
    let dispatcher = Dispatcher::new().with(Placement::Browser, Rc::new(world.host.clone()));
    for target in [
        json!("browser"),
        json!({"kind": "browser"}),
        json!({"kind": "browser", "key": "env_browser_local"}),
        json!({"kind": "browser", "key": null}),
    ] {
        let (placement, host) = dispatcher.dispatch(&target).unwrap();
        assert_eq!((placement, host.environment()), (Placement::Browser, "env_browser_local"));
    }
    let refused = |target| dispatcher.dispatch(&target).err().unwrap().code;
    for target in [json!("cloud"), json!(null), json!({}), json!("machine"), json!({"reach": "paired"})] {
        assert_eq!(refused(target), Code::PlacementUnavailable);
    }
    for key in [json!("env_other"), json!(7), json!("")] {
        assert_eq!(refused(json!({"kind": "browser", "key": key})), Code::EnvironmentMismatch);
    }
}

#[test]
fn the_three_calls_reach_the_host() {
    let world = World::new();
    let dispatcher = Dispatcher::new().with(Placement::Browser, Rc::new(world.host.clone()));
    let call = |target: serde_json::Value, tool: &'static str, args: serde_json::Value| {
        let (dispatcher, answer) = (dispatcher.clone(), Pending::default());
        let slot = Rc::clone(&answer);
        world.spawn(async move {
            let answer = dispatcher.call(&target, tool, &args, &Caller::new("ann", "c1")).await;
            *slot.borrow_mut() = Some(answer);
        });
        answer.take().unwrap()
    };
    let here = || json!({"kind": "browser"});
    let delegated = call(here(), "delegate_task", json!({"agent": "hash", "task": "do it"})).unwrap();
    let address = &delegated.task().unwrap().address;
    let status = call(here(), "task_status", json!({"address": address})).unwrap();
    assert_eq!(status.task().unwrap().state, TaskState::Completed);
    assert_eq!(code(&call(here(), "cancel_task", json!({"address": address}))), Code::TaskNotRunning);
    assert_eq!(code(&call(here(), "run_anything", json!({}))), Code::UnknownTool);
    assert_eq!(
        code(&call(json!("remote_x"), "task_status", json!({"address": address}))),
        Code::PlacementUnavailable
    );
}
