//! What is admitted, in which order it is refused, and what a repeated call answers.

use futures::channel::oneshot;
use serde_json::{Value, json};
use toolshelf_core::RootDescriptor;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::TaskState;
use toolshelf_core::task::listing::Filter;
use toolshelf_host::task_ports::{Durability, SelectedRoot};
use toolshelf_host::{Caller, Reply, TaskHostConfig, Wish};

use crate::world::*;

#[test]
fn a_task_is_admitted_as_queued_and_runs_afterwards() {
    let world = World::new();
    let (_settle, held) = oneshot::channel();
    world.script(Script::Held(held));
    let answer = world.delegate("c1").unwrap();
    let wire = serde_json::to_value(&answer).unwrap();
    assert_eq!((&wire["ok"], &wire["existing"]), (&json!(true), &json!(false)));
    assert_eq!((&wire["task"]["state"], &wire["task"]["placement"]), (&json!("queued"), &json!("browser")));
    assert_eq!(wire["task"]["createdAt"], "2026-01-01T00:00:00.000Z");
    let keys: Vec<_> = wire.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 3);
    let address = &answer.task().unwrap().address;
    assert_eq!(world.state(address), TaskState::Running);
    let wire = serde_json::to_value(world.status_at(&world.host, address).unwrap()).unwrap();
    assert!(wire["ok"] == true && wire["task"]["agent"] == "hash");
}

#[test]
fn queued_then_running_are_written_before_anything_runs() {
    let world = World::new();
    let (release, held) = oneshot::channel();
    *world.journal.held_append.borrow_mut() = Some(held);
    world.delegate("c1").unwrap();
    assert_eq!(*world.journal.writes.borrow(), [(TaskState::Queued, Durability::Strict)]);
    assert!(world.shared.ran.borrow().is_empty());
    release.send(()).unwrap();
    world.settle();
    let writes = world.journal.writes.borrow();
    let expected = [
        (TaskState::Queued, Durability::Strict),
        (TaskState::Running, Durability::Strict),
        (TaskState::Completed, Durability::Quiet),
    ];
    assert_eq!(*writes, expected);
}

#[test]
fn nobody_calls_nothing_and_unknown_tools_are_unknown() {
    let world = World::new();
    let call = |tool: &str, owner: Option<&str>| {
        let caller = Caller { owner: owner.map(str::to_owned), call_id: None, wish: Wish::default() };
        code(&world.call_at(&world.host, tool, json!({}), caller))
    };
    for tool in ["delegate_task", "task_status", "cancel_task", "nope"] {
        assert_eq!(call(tool, None), Code::TaskOwnerUnverified);
        assert_eq!(call(tool, Some(" ")), Code::TaskOwnerUnverified);
    }
    assert_eq!(call("nope", Some("ann")), Code::UnknownTool);
}

/// Breaks one thing after the other, the last to be checked first: each hides those before it.
#[test]
fn the_checks_come_in_the_documented_order() {
    let world = World::new();
    let good = json!({"agent": "hash", "task": "do it"});
    let call = |args: &Value, call_id: Option<&str>| {
        let caller =
            Caller { owner: Some("ann".into()), call_id: call_id.map(str::to_owned), wish: Wish::default() };
        code(&world.call_at(&world.host, "delegate_task", args.clone(), caller))
    };
    let terms = |change: &dyn Fn(&mut toolshelf_host::task_ports::Terms)| {
        change(world.shared.terms.borrow_mut().as_mut().unwrap());
    };

    terms(&|terms| terms.mechanism = "  ".into());
    assert_eq!(call(&good, Some("c1")), Code::UnboundedExecutor);
    terms(&|terms| terms.max_output_bytes = 65_537);
    assert_eq!(call(&good, Some("c1")), Code::UnboundedExecutor);
    terms(&|terms| (terms.max_output_bytes, terms.deadline_ms) = (1, 0));
    assert_eq!(call(&good, Some("c1")), Code::UnboundedExecutor);
    terms(&|terms| terms.deadline_ms = 300_001);
    let caller = Caller::new("ann", "c1");
    let refusal = world.call_at(&world.host, "delegate_task", good.clone(), caller).unwrap_err();
    assert_eq!(refusal.code, Code::UnboundedExecutor);
    assert!(refusal.why.contains("exceeds the browser placement maximum"), "{}", refusal.why);
    *world.shared.terms.borrow_mut() = Err(Refusal::new(Code::AgentNotConfigured, "no such agent"));
    assert_eq!(call(&good, Some("c1")), Code::AgentNotConfigured);
    world.shared.executor_is_there.set(false);
    assert_eq!(call(&good, Some("c1")), Code::ExecutorUnavailable);

    // All places taken.
    let terms = toolshelf_host::task_ports::Terms {
        mechanism: "m".into(),
        deadline_ms: 30_000,
        max_output_bytes: 10,
    };
    let refused = std::mem::replace(&mut *world.shared.terms.borrow_mut(), Ok(terms));
    world.shared.executor_is_there.set(true);
    for call_id in ["h1", "h2", "h3", "h4"] {
        world.script(Script::Never);
        world.delegate(call_id).unwrap();
    }
    *world.shared.terms.borrow_mut() = refused;
    world.shared.executor_is_there.set(false);
    assert_eq!(call(&good, Some("c1")), Code::TaskCapacityExhausted);
    *world.shared.root.borrow_mut() = None;
    assert_eq!(call(&good, Some("c1")), Code::TaskRootUnavailable);

    // A stored call is found before all of that.
    assert!(is_existing(&world.delegate("h1")));
    assert_eq!(call(&json!({"agent": "hash", "task": "other"}), Some("h1")), Code::TaskCallIdConflict);
    for bad in [None, Some(""), Some("a b"), Some("a\0b")] {
        assert_eq!(call(&good, bad), Code::TaskCallIdRequired);
    }
    assert_eq!(call(&json!({"agent": "hash", "task": "t", "owner": "eve"}), None), Code::TaskAuthorityField);
    assert_eq!(world.host.active_tasks(), 4);
}

#[test]
fn a_refused_task_takes_no_place_and_leaves_nothing() {
    let world = World::new();
    *world.shared.terms.borrow_mut() = Err(Refusal::new(Code::UnboundedExecutor, "no"));
    for number in 0..10 {
        assert_eq!(code(&world.delegate(&format!("c{number}"))), Code::UnboundedExecutor);
    }
    assert_eq!(world.host.active_tasks(), 0);
    assert!(world.journal.writes.borrow().is_empty());
}

#[test]
fn roots_of_other_placements_and_other_machines_are_unavailable() {
    let select = |world: &World, descriptor| {
        *world.shared.root.borrow_mut() = Some(SelectedRoot { descriptor, identity: Some((1, 2)) });
    };
    let machine_root = |environment: Option<&str>| RootDescriptor::Machine {
        path: "/srv".into(),
        environment: environment.map(str::to_owned),
    };
    let page = World::new();
    select(&page, machine_root(None));
    assert_eq!(code(&page.delegate("c1")), Code::TaskRootUnavailable);
    select(&page, RootDescriptor::Handle { id: "h".into(), label: None });
    page.delegate("c1").unwrap();

    let config = |environment: &str| {
        TaskHostConfig::machine(environment.into(), "i".into(), "p".into(), std::rc::Rc::new(redact))
    };
    let machine = World::with(config("env_0123456789abcdef"));
    assert_eq!(code(&machine.delegate("c1")), Code::TaskRootUnavailable);
    for wrong in [None, Some("env_ffffffffffffffff")] {
        select(&machine, machine_root(wrong));
        assert_eq!(code(&machine.delegate("c1")), Code::TaskRootUnavailable);
    }
    select(&machine, machine_root(Some("env_0123456789abcdef")));
    let address = machine.task("c1");
    assert_eq!(machine.state(&address), TaskState::Completed);
    *machine.shared.root_check.borrow_mut() = Err(Refusal::new(Code::TaskRootReplaced, "another folder"));
    assert_eq!(code(&machine.status_at(&machine.host, &address)), Code::TaskRootReplaced);

    for environment in ["env_1", "env_0123456789ABCDEF", "local", ""] {
        assert_eq!(code(&World::with(config(environment)).delegate("c1")), Code::TaskEnvironmentUnverified);
    }
}

#[test]
fn a_repeated_call_answers_with_its_task_and_runs_nothing() {
    let world = World::new();
    let first = world.task("c1");
    let again = world.delegate("c1").unwrap();
    let Reply::Delegated { task, existing: true } = again else { panic!("{again:?}") };
    assert_eq!((task.address, task.state), (first, TaskState::Completed));
    assert_eq!(world.shared.ran.borrow().len(), 1);
    assert_eq!(code(&world.delegate_as("ann", "c1", "something else")), Code::TaskCallIdConflict);
}

#[test]
fn a_repeat_answers_although_all_places_are_taken() {
    let world = World::new();
    for call_id in ["c1", "c2", "c3", "c4"] {
        world.script(Script::Never);
        world.delegate(call_id).unwrap();
    }
    assert_eq!(code(&world.delegate("c5")), Code::TaskCapacityExhausted);
    assert!(is_existing(&world.delegate("c1")));
}

#[test]
fn owners_and_call_ids_do_not_run_together() {
    let world = World::new();
    for (owner, call_id) in [("a:b", "c"), ("a", "b:c"), ("a\0b", "c"), ("a", "c")] {
        let answer = world.delegate_as(owner, call_id, "do it");
        assert!(!is_existing(&answer) && answer.is_ok(), "{owner:?} {call_id:?}");
    }
}

#[test]
fn the_same_call_at_the_same_time_is_one_task() {
    let world = World::new();
    let (release, held) = oneshot::channel();
    *world.journal.held.borrow_mut() = Some(held);
    let start = |task: &str| {
        let args = json!({"agent": "hash", "task": task});
        world.start_at(&world.host, "delegate_task", args, Caller::new("ann", "c1"))
    };
    let (first, second, other) = (start("do it"), start("do it"), start("do something else"));
    assert!(first.borrow().is_none() && second.borrow().is_none() && other.borrow().is_none());
    release.send(()).unwrap();
    world.settle();
    let (first, second) = (first.take().unwrap(), second.take().unwrap());
    assert!(!is_existing(&first) && is_existing(&second));
    assert_eq!(first.unwrap().task().unwrap().address, second.unwrap().task().unwrap().address);
    assert_eq!(code(&other.take().unwrap()), Code::TaskCallIdConflict);
    assert_eq!(world.shared.ran.borrow().len(), 1);
}

#[test]
fn five_at_once_are_four() {
    let world = World::new();
    let mut releases = Vec::new();
    let started: Vec<_> = (0..5)
        .map(|number| {
            let (release, held) = oneshot::channel();
            *world.journal.held.borrow_mut() = Some(held);
            releases.push(release);
            world.script(Script::Never);
            let args = json!({"agent": "hash", "task": "do it"});
            world.start_at(&world.host, "delegate_task", args, Caller::new("ann", format!("c{number}")))
        })
        .collect();
    // None is written yet, and the fifth is refused already.
    assert_eq!(code(started[4].borrow().as_ref().unwrap()), Code::TaskCapacityExhausted);
    assert!(started[..4].iter().all(|answer| answer.borrow().is_none()));
    drop(releases);
    world.settle();
    assert!(started[..4].iter().all(|answer| answer.borrow().as_ref().unwrap().is_ok()));
}

#[test]
fn two_tabs_that_make_the_same_call_make_one_task() {
    let world = World::new();
    let tab = world.other_life("boot_2");
    let (release, held) = oneshot::channel();
    *world.journal.held.borrow_mut() = Some(held);
    let start = |host| {
        let args = json!({"agent": "hash", "task": "do it"});
        world.start_at(host, "delegate_task", args, Caller::new("ann", "c1"))
    };
    let slow = start(&world.host);
    let fast = start(&tab).take().unwrap();
    assert!(!is_existing(&fast));
    release.send(()).unwrap();
    world.settle();
    let slow = slow.take().unwrap();
    assert!(is_existing(&slow));
    assert_eq!(slow.unwrap().task().unwrap().address, fast.unwrap().task().unwrap().address);
    assert_eq!((world.shared.ran.borrow().len(), world.host.active_tasks()), (1, 0));
}

#[test]
fn the_owner_s_tasks_are_listed_in_batches_the_newest_first() {
    let world = World::new();
    let mut addresses = [world.task("c1"), world.task("c2"), world.task("c3")];
    addresses.reverse();
    world.delegate_as("bob", "c1", "do it").unwrap();
    let host = world.host.clone();
    let listed = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let slot = std::rc::Rc::clone(&listed);
    world.spawn(async move {
        let (caller, mut next) = (Caller::new("ann", ""), None);
        loop {
            // The batches count all tasks, whoever's they are.
            let batch = host.recent(&caller, next, 2).await.unwrap();
            slot.borrow_mut().push(batch.tasks.into_iter().map(|task| task.view.address).collect::<Vec<_>>());
            let Some(position) = batch.next else { break };
            next = Some(position);
        }
    });
    let listed = listed.borrow();
    assert_eq!(listed.concat(), addresses);
    assert_eq!(listed.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 0]);
}

#[test]
fn a_filtered_list_passes_over_the_others_until_it_is_full() {
    let world = World::new();
    let (held, settle) = world.held_task("c1");
    let done: Vec<_> = (2..9).map(|call| world.task(&format!("c{call}"))).collect();
    assert_eq!(world.host.unfinished_tasks(), 1);
    assert_eq!(world.host.view(&held).unwrap().state, TaskState::Running);
    assert_eq!(world.host.view(&done[0]), None, "it is in the journal alone");
    let list = |filter, before, limit| {
        let listed = std::rc::Rc::new(std::cell::RefCell::new(None));
        let (host, slot) = (world.host.clone(), std::rc::Rc::clone(&listed));
        world.spawn(async move {
            let caller = Caller::new("ann", "");
            *slot.borrow_mut() = Some(host.list(&caller, filter, before, limit).await.unwrap());
        });
        let batch = listed.take().unwrap();
        (batch.tasks.into_iter().map(|task| task.view.address).collect::<Vec<_>>(), batch.next)
    };
    assert_eq!(list(Filter::Active, None, 5), (vec![held.clone()], None));
    let (first, next) = list(Filter::Completed, None, 3);
    let (second, next) = list(Filter::Completed, next, 3);
    let (third, end) = list(Filter::Completed, next, 3);
    let newest_first: Vec<_> = done.into_iter().rev().collect();
    assert_eq!([first, second, third].concat(), newest_first);
    assert_eq!(end, None);
    assert_eq!(list(Filter::All, None, 100).0.len(), 8);
    assert_eq!(list(Filter::Unsuccessful, None, 5), (Vec::new(), None));
    settle.send(Ok("done".into())).unwrap();
    world.settle();
    assert_eq!(world.host.unfinished_tasks(), 0);
}

#[test]
fn a_caller_may_wish_for_a_root_and_a_deadline_and_the_executor_hears_it() {
    let world = World::new();
    let args = json!({"agent": "hash", "task": "do it"});
    let root = RootDescriptor::Opfs { path: "v1/other".into() };
    let wish = Wish {
        root: Some(SelectedRoot { descriptor: root.clone(), identity: None }),
        deadline_ms: Some(1_234),
    };
    let caller = Caller { wish, ..Caller::new("ann", "c1") };
    let task = world.call_at(&world.host, "delegate_task", args.clone(), caller).unwrap();
    assert_eq!(task.task().unwrap().root, root);
    assert_eq!(world.shared.wished.get(), Some(1_234));
    let machine = RootDescriptor::Machine { path: "/srv".into(), environment: None };
    let wish = Wish { root: Some(SelectedRoot { descriptor: machine, identity: None }), ..Wish::default() };
    let caller = Caller { wish, ..Caller::new("ann", "c2") };
    let refusal = world.call_at(&world.host, "delegate_task", args, caller).unwrap_err();
    assert_eq!(refusal.code, Code::TaskRootUnavailable);
}
