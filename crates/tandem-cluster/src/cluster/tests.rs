//! The handle over threads of one process: what a job of several ranks relies on.

use super::*;
use crate::in_process::Hub;
use std::time::Instant;

fn options() -> ClusterOptions {
    ClusterOptions { silence_limit: Duration::from_millis(1500), ..ClusterOptions::default() }
}

/// Runs a closure on each rank of a new job.
fn on_ranks<R: Send>(ranks: usize, work: impl Fn(Cluster, Hub) -> R + Sync) -> Vec<R> {
    let hub = Hub::new(ranks);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..ranks)
            .map(|rank| {
                let (hub, work) = (hub.clone(), &work);
                scope.spawn(move || {
                    let transport = hub.transport(rank);
                    let cluster = Cluster::start(options(), move || Ok(transport)).unwrap();
                    work(cluster, hub)
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    })
}

#[test]
fn sums_and_broadcasts_are_equal_on_all_ranks() {
    let found = on_ranks(3, |cluster, _| {
        let rank = cluster.rank();
        let first = cluster.start_sum(vec![rank as f32, 1.0]);
        let second = cluster.queue_sum(vec![0.5]);
        let sums = (first.wait().unwrap(), second.wait().unwrap());
        let told = cluster.broadcast(2, vec![rank as u8; rank]).unwrap();
        let all = cluster.gather(vec![rank as u8]).unwrap();
        cluster.finish().unwrap();
        (sums, told, all)
    });
    let expected = ((vec![3.0, 3.0], vec![1.5]), vec![2, 2], vec![vec![0], vec![1], vec![2]]);
    assert_eq!(found, vec![expected; 3]);
}

#[test]
fn messages_arrive_in_order() {
    let found = on_ranks(2, |cluster, _| {
        let list: Vec<Vec<u8>> = match cluster.rank() {
            0 => (0..5).map(|_| cluster.receive(1).unwrap()).collect(),
            _ => {
                (0..5).for_each(|number| cluster.send(0, vec![number]).unwrap());
                Vec::new()
            }
        };
        cluster.finish().unwrap();
        list
    });
    assert_eq!(found[0], (0..5).map(|number| vec![number]).collect::<Vec<_>>());
}

#[test]
fn a_rank_that_differs_is_named() {
    let found = on_ranks(3, |cluster, _| {
        let value = if cluster.rank() == 1 { "b" } else { "a" };
        cluster.check_equal(value, "other settings").unwrap_err().to_string()
    });
    for error in found {
        assert!(error.starts_with("rank 1 on host "), "{error}");
        assert!(error.ends_with(" has other settings than rank 0"), "{error}");
    }
}

#[test]
fn a_rank_that_is_cut_off_fails_the_calls_of_all_others_and_is_named() {
    let found = on_ranks(3, |cluster, hub| {
        cluster.barrier().unwrap();
        if cluster.rank() == 2 {
            hub.cut_off(2);
        }
        let begun = Instant::now();
        let error = cluster.sum_f64(vec![1.0]).unwrap_err();
        cluster.fail("it cannot continue");
        (error, begun.elapsed())
    });
    for (error, _) in &found[..2] {
        assert!(matches!(error, ClusterError::Lost { rank: 2, .. }), "{error}");
    }
    // It hears nothing of the others either.
    assert!(matches!(found[2].0, ClusterError::Lost { rank: 0, .. }), "{}", found[2].0);
}

#[test]
fn a_rank_that_stops_tells_the_others_why_and_leaves_after_rank_0() {
    let left = std::sync::Mutex::new(Vec::new());
    let found = on_ranks(3, |cluster, _| {
        cluster.barrier().unwrap();
        let told = match cluster.rank() {
            1 => "its own error".to_string(),
            _ => cluster.sum_f64(vec![1.0]).unwrap_err().to_string(),
        };
        if cluster.is_first() {
            // Rank 0 writes its checkpoint.
            std::thread::sleep(Duration::from_millis(200));
            left.lock().unwrap().push(0);
        }
        cluster.fail("the disk is full");
        if !cluster.is_first() {
            left.lock().unwrap().push(cluster.rank());
        }
        told
    });
    for told in [&found[0], &found[2]] {
        assert!(told.starts_with("rank 1 on host "), "{told}");
        assert!(told.ends_with(" stopped: the disk is full"), "{told}");
    }
    assert_eq!(left.lock().unwrap()[0], 0);
}

#[test]
fn ranks_that_are_out_of_step_are_named_with_what_each_of_them_does() {
    let found = on_ranks(3, |cluster, _| {
        let values = [0.0; AGREED_VALUES];
        cluster.agree(Topic::Step { step: 4 }, values).unwrap();
        let error = match cluster.rank() {
            // As a rank that ends while the others take a step.
            1 => cluster.finish().unwrap_err(),
            _ => cluster.agree(Topic::Step { step: 5 }, values).unwrap_err(),
        };
        cluster.fail("out of step");
        error.to_string()
    });
    for error in found {
        assert!(error.starts_with("rank 1 on host "), "{error}");
        let facts =
            " is at the end of the job, after the agreement on step 4, but rank 0 is before step 5";
        assert!(error.ends_with(facts), "{error}");
    }
}

#[test]
fn a_failed_rank_waits_while_rank_0_makes_progress() {
    let (hub, saved) = (Hub::new(2), std::sync::atomic::AtomicBool::new(false));
    // Rank 0 needs several times as long as this to save.
    let options = || ClusterOptions {
        goodbye_limit: Duration::from_millis(1500),
        silence_limit: Duration::from_secs(60),
        ..ClusterOptions::default()
    };
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let (hub, saved) = (hub.clone(), &saved);
            scope.spawn(move || {
                let transport = hub.transport(rank);
                let cluster = Cluster::start(options(), move || Ok(transport)).unwrap();
                let progress = Arc::new(AtomicU64::new(0));
                cluster.show_progress(progress.clone());
                cluster.barrier().unwrap();
                if rank == 0 {
                    for _ in 0..50 {
                        std::thread::sleep(Duration::from_millis(100));
                        progress.fetch_add(1, Ordering::Relaxed);
                    }
                    saved.store(true, Ordering::SeqCst);
                }
                cluster.fail("the device is lost");
                assert!(saved.load(Ordering::SeqCst), "it left before rank 0 had saved");
            });
        }
    });
}

#[test]
fn a_failed_rank_leaves_when_rank_0_lives_and_makes_no_progress() {
    let hub = Hub::new(2);
    let options = || ClusterOptions {
        goodbye_limit: Duration::from_millis(100),
        silence_limit: Duration::from_secs(60),
        ..ClusterOptions::default()
    };
    let (tell, told) = sync_channel::<()>(0);
    std::thread::scope(|scope| {
        let start = |rank: usize| {
            let transport = hub.transport(rank);
            move || Cluster::start(options(), move || Ok(transport)).unwrap()
        };
        let (first, second) = (start(0), start(1));
        scope.spawn(move || {
            let cluster = first();
            // It is told when the other rank is gone, and would wait for ever otherwise.
            told.recv().unwrap();
            cluster.fail("it ends later");
        });
        scope.spawn(move || {
            second().fail("the device is lost");
            tell.send(()).unwrap();
        });
    });
}

#[test]
fn ranks_of_one_machine_share_its_cores() {
    let found = on_ranks(2, |cluster, _| {
        let local = (cluster.local_rank(), cluster.local_ranks(), cluster.ranks_on_same_cores());
        cluster.finish().unwrap();
        local
    });
    assert_eq!(found, [(0, 2, 2), (1, 2, 2)]);
}

#[test]
fn a_sum_that_nobody_waits_for_yet_is_carried_on() {
    let over = on_ranks(2, |cluster, hub| {
        let sum = cluster.start_sum(vec![1.0; 10]);
        let begun = Instant::now();
        while hub.is_busy(cluster.rank()) && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let over = !hub.is_busy(cluster.rank());
        assert_eq!(sum.wait().unwrap(), [2.0; 10]);
        cluster.finish().unwrap();
        over
    });
    assert_eq!(over, [true, true]);
}

#[test]
fn sums_that_were_queued_are_over_when_all_calls_are() {
    on_ranks(2, |cluster, hub| {
        let sums: Vec<_> = (0..100).map(|size| cluster.queue_sum(vec![0.5; size])).collect();
        cluster.complete_calls();
        assert!(!hub.is_busy(cluster.rank()));
        for (size, sum) in sums.into_iter().enumerate() {
            assert_eq!(sum.wait().unwrap(), vec![1.0; size]);
        }
        cluster.finish().unwrap();
    });
}

#[test]
fn a_thread_that_waits_learns_that_another_one_ended_the_job() {
    let found = on_ranks(2, |cluster, _| {
        if cluster.rank() == 1 {
            return cluster.receive(0).unwrap_err();
        }
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| cluster.receive(1).unwrap_err());
            std::thread::sleep(Duration::from_millis(50));
            cluster.fail("the disk is full");
            waiting.join().unwrap()
        })
    });
    for error in found {
        assert!(matches!(error, ClusterError::Stopped { rank: 0, .. }), "{error}");
    }
}

#[test]
fn after_the_end_calls_fail_and_a_second_end_returns() {
    let found = on_ranks(2, |cluster, _| {
        cluster.finish().unwrap();
        cluster.fail("too late");
        cluster.barrier().unwrap_err()
    });
    assert!(found.iter().all(|error| matches!(error, ClusterError::ThreadEnded)), "{found:?}");
}
