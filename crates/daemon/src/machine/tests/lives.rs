//! Several processes, one after the other and at once.

use super::*;

const SLEEPS: (&str, &str) = ("sleeps", "echo $$ > pid; exec sleep 1000");

#[test]
fn a_task_of_a_life_that_is_over_is_interrupted_and_not_run_again() {
    let world = World::new();
    let address = on_one_thread(async {
        let life = world.begin(&[SLEEPS]).await;
        let view = life.delegate("sleeps", "x").await.unwrap();
        eventually("it runs", || pid_in(&world.root, "pid").is_some()).await;
        // While the life goes on, another one only sees that it has the task.
        let other = world.begin(&[SLEEPS]).await;
        let seen = other.status(&view.address).await.unwrap();
        assert!(seen.stale && !seen.state.is_terminal(), "{seen:?}");
        view.address
        // The life ends here, without a word: everything of it is dropped.
    });
    on_one_thread(async {
        let pid = pid_in(&world.root, "pid").unwrap();
        eventually("its command is gone", || gone(pid)).await;
        fs::remove_file(world.root.join("pid")).unwrap();
        let life = world.begin(&[SLEEPS]).await;
        let view = life.status(&address).await.unwrap();
        let reason = Some("environment-ended-outcome-unknown");
        assert_eq!((view.state, view.reason.as_deref()), (TaskState::Interrupted, reason));
        pause(300).await;
        assert_eq!(pid_in(&world.root, "pid"), None, "no prompt is replayed");
        assert_eq!(life.machine.environment().active, 0);
    });
}

#[test]
fn another_process_can_cancel_a_task_that_runs_here() {
    on_one_thread(async {
        let world = World::new();
        let (one, other) = (world.begin(&[SLEEPS]).await, world.begin(&[SLEEPS]).await);
        let view = one.delegate("sleeps", "x").await.unwrap();
        eventually("it runs", || pid_in(&world.root, "pid").is_some()).await;
        let pid = pid_in(&world.root, "pid").unwrap();
        one.until(&view.address, |view| view.state == TaskState::Running).await;
        assert_eq!(other.cancel(&view.address).await, Ok((TaskState::Cancelled, true)));
        assert!(gone(pid));
        let wanted =
            [TaskState::Queued, TaskState::Running, TaskState::CancelRequested, TaskState::Cancelled];
        assert_eq!(one.told(), wanted);
        assert_eq!(other.machine.environment().active, 0);
    });
}

#[test]
fn a_folder_that_is_replaced_while_a_task_runs_is_not_worked_in() {
    on_one_thread(async {
        let world = World::new();
        let script = "echo ready >&2; while [ ! -e ../data/go ]; do sleep 0.02; done; echo late > late";
        let life = world.begin(&[("late", script)]).await;
        let view = life.delegate("late", "x").await.unwrap();
        life.until(&view.address, |view| view.progress.is_some()).await;
        let aside = world.data.join("aside");
        fs::rename(&world.root, &aside).unwrap();
        fs::create_dir(&world.root).unwrap();
        assert_eq!(code(life.status(&view.address).await), Some(Code::TaskRootReplaced));
        fs::create_dir(world.data.join("data")).unwrap();
        fs::write(world.data.join("data/go"), "").unwrap();
        fs::write(world.data.join("go"), "").unwrap();
        eventually("its place is free", || life.machine.environment().active == 0).await;
        assert!(aside.join("late").exists() && !world.root.join("late").exists());
        assert!(!world.root.join(".audit").exists());
    });
}
