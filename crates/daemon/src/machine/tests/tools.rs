//! Tools of the shelf as agents, with files of the root; lists and refusals.

use toolshelf_core::task::listing::Filter;

use super::*;

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn a_tool_of_the_shelf_works_on_files_of_the_root() {
    on_one_thread(async {
        let world = World::new();
        let life = world.begin(&[]).await;
        world.write("old.txt", "alpha\nbeta\n");
        world.write("new.txt", "alpha\ngamma\nbeta\n");
        let task = r#"{"a": {"file": "old.txt"}, "b": {"file": "new.txt"}, "out": "made/changes.patch"}"#;
        let view = life.run("diff", task).await;
        assert_eq!(view.state, TaskState::Completed, "{view:?}");
        let patch = world.text("made/changes.patch").unwrap();
        assert_eq!(patch, "--- old\n+++ new\n@@ -1,2 +1,3 @@\n alpha\n+gamma\n beta\n");
        let answer = json_of(view.answer.as_deref().unwrap());
        assert_eq!((&answer["out"], &answer["bytes"]), (&json!("made/changes.patch"), &json!(patch.len())));
        assert_eq!(*life.calls.borrow(), [("diff".to_owned(), true)]);
        assert_eq!(life.told(), [TaskState::Queued, TaskState::Running, TaskState::Completed]);

        let environment = life.machine.environment();
        assert_eq!((environment.active, environment.roots.len()), (0, 2));
        assert!(environment.key.starts_with("env_") && environment.key.len() == 20);
        assert_eq!(view.environment, environment.key);
    });
}

#[test]
fn what_stands_against_a_task_is_named() {
    on_one_thread(async {
        let world = World::new();
        let life = world.begin(&[]).await;
        world.write("large", &"x".repeat(8_193));
        for (agent, task, wanted) in [
            ("nobody", "x", Code::AgentNotConfigured),
            ("hash", r#"{"input": {"file": ".audit/x"}}"#, Code::ProtectedAudit),
            ("hash", r#"{"input": {"file": "../x"}}"#, Code::OutsideRoot),
            ("hash", r#"{"x": "y"}"#, Code::InvalidArgument),
            ("a b", "x", Code::AgentRequired),
        ] {
            assert_eq!(code(life.delegate(agent, task).await), Some(wanted), "{agent} {task}");
        }
        for (task, wanted) in [
            (r#"{"input": {"file": "none"}}"#, "file-unavailable"),
            (r#"{"input": {"file": "large"}}"#, "over-budget"),
        ] {
            let view = life.run("hash", task).await;
            assert_eq!((view.state, view.reason.as_deref()), (TaskState::Failed, Some(wanted)), "{task}");
        }
        assert!(life.calls.borrow().is_empty());
    });
}

#[test]
fn the_same_call_has_the_same_task_in_every_process() {
    on_one_thread(async {
        let world = World::new();
        let (one, other) = (world.begin(&[]).await, world.begin(&[]).await);
        let caller = || Caller::new(OWNER, "call-1");
        let first = one.delegate_as("hash", "abc", caller()).await.unwrap();
        assert_eq!(one.ended(&first.address).await.answer.as_deref(), Some(ABC));
        for life in [&one, &other] {
            let again = life.delegate_as("hash", "abc", caller()).await.unwrap();
            assert_eq!((&again.address, again.state), (&first.address, TaskState::Completed));
            let conflict = life.delegate_as("hash", "abd", caller()).await;
            assert_eq!(code(conflict), Some(Code::TaskCallIdConflict));
        }
        assert_eq!(other.status(&first.address).await.unwrap().answer.as_deref(), Some(ABC));
        assert_eq!(code(other.cancel(&first.address).await), Some(Code::TaskNotRunning));
        let stranger = Caller::new("somebody", "");
        let args = json!({ "address": first.address });
        let asked = other.machine.call("task_status", &args, &stranger).await;
        assert_eq!(code(asked), Some(Code::TaskOwnerMismatch));
        assert_eq!((one.calls.borrow().len(), other.calls.borrow().len()), (1, 0));
    });
}

#[test]
fn tasks_of_all_roots_are_listed_and_told_in_detail() {
    on_one_thread(async {
        let world = World::new();
        let life = world.begin(&[]).await;
        for number in 0..5 {
            let root = [&world.root, &world.other_root][number % 2];
            let mut caller = Caller::new(OWNER, format!("call-{number}"));
            caller.wish.root = Some(life.machine.root(root.to_str()).unwrap());
            let task = if number == 4 { r#"{"input": {"file": "none"}}"# } else { "abc" };
            let view = life.delegate_as("hash", task, caller).await.unwrap();
            life.ended(&view.address).await;
        }
        let page = life.machine.list(OWNER, Filter::All, None, 3).await.unwrap();
        assert_eq!(page.rows.len(), 3);
        assert!(page.rows.is_sorted_by(|one, other| one.position > other.position));
        let rest = life.machine.list(OWNER, Filter::All, page.next, 3).await.unwrap();
        assert_eq!((rest.rows.len(), rest.next), (2, None));
        let failed = life.machine.list(OWNER, Filter::Unsuccessful, None, 10).await.unwrap();
        assert_eq!(failed.rows.len(), 1);
        assert!(life.machine.list("somebody", Filter::All, None, 10).await.unwrap().rows.is_empty());
        // Another process has the same list, place by place.
        let other = world.begin(&[]).await;
        let all = other.machine.list(OWNER, Filter::All, None, 10).await.unwrap();
        assert_eq!(all.rows[..3], page.rows[..]);
        assert_eq!(all.rows[3..], rest.rows[..]);

        let row = &all.rows[4];
        let detail = other.machine.detail(OWNER, row.position).await.unwrap();
        assert_eq!((&detail.row, &*detail.task, &*detail.call_id), (row, "abc", "call-0"));
        assert_eq!(detail.moments.len(), 3);
        for position in [0, row.position + 1, u64::MAX] {
            assert_eq!(code(other.machine.detail(OWNER, position).await), Some(Code::TaskNotFound));
        }
        assert_eq!(code(other.machine.detail("somebody", row.position).await), Some(Code::TaskNotFound));
    });
}

#[test]
fn a_log_or_a_folder_that_cannot_be_used_is_named_and_the_other_root_works() {
    on_one_thread(async {
        let world = World::new();
        let life = world.begin(&[]).await;
        let view = life.run("hash", "abc").await;
        let audit = world.root.join(".audit");
        let log = fs::read_dir(&audit).unwrap().next().unwrap().unwrap().path();
        let good = fs::read(&log).unwrap();
        fs::write(&log, [&b"garbage\n"[..], &good].concat()).unwrap();
        let life = world.begin(&[]).await;
        assert_eq!(code(life.delegate("hash", "abc").await), Some(Code::TaskAuditUnavailable));
        assert_eq!(code(life.status(&view.address).await), Some(Code::TaskAuditUnavailable));
        let mut caller = Caller::new(OWNER, "elsewhere");
        caller.wish.root = Some(life.machine.root(world.other_root.to_str()).unwrap());
        let elsewhere = life.delegate_as("hash", "abc", caller).await.unwrap();
        assert_eq!(life.ended(&elsewhere.address).await.state, TaskState::Completed);
        fs::write(&log, &good).unwrap();
        assert_eq!(world.begin(&[]).await.status(&view.address).await.unwrap().state, TaskState::Completed);

        let aside = world.data.join("aside");
        fs::rename(&world.root, &aside).unwrap();
        assert_eq!(code(life.delegate("hash", "abc").await), Some(Code::TaskRootUnavailable));
        assert_eq!(code(life.status(&view.address).await), Some(Code::TaskRootUnavailable));
        let available: Vec<_> = life.machine.environment().roots.iter().map(|root| root.available).collect();
        assert_eq!(available, [false, true]);
        fs::create_dir(&world.root).unwrap();
        assert_eq!(code(life.status(&view.address).await), Some(Code::TaskRootReplaced));
        // The new folder can be worked in.
        let life = world.begin(&[]).await;
        assert_eq!(life.run("hash", "abc").await.state, TaskState::Completed);
    });
}

#[test]
fn an_agent_of_a_tools_name_is_refused_with_its_place() {
    on_one_thread(async {
        let world = World::new();
        let refusal = world.try_begin("\n[agents.hash]\ncommand = [\"x\"]").await.err().unwrap();
        assert_eq!(refusal.code, Code::ConfigInvalid);
        assert!(
            refusal.why.contains("toolshelf.toml:2: ") && refusal.why.contains("rename"),
            "{}",
            refusal.why
        );
    });
}
