//! Work on all cores, on threads that end with the call: a fork loses none.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many threads are worth it.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(16)
}

/// Does the work of each item while `beside` runs on this thread; the results
/// are in order. Each thread has a scratch of its own.
pub(super) fn on_threads<T: Sync, R: Send, S: Default, B>(
    items: &[T],
    threads: usize,
    beside: impl FnOnce() -> B,
    work: impl Fn(&T, &mut S) -> R + Sync,
) -> (Vec<R>, B) {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut scratch = S::default();
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            match items.get(at) {
                Some(item) => done.push((at, work(item, &mut scratch))),
                None => return done,
            }
        }
    };
    if threads <= 1 || items.len() <= 1 {
        let done = run();
        return (done.into_iter().map(|(_, r)| r).collect(), beside());
    }
    let (mut done, beside) = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(items.len()))
            .map(|_| scope.spawn(run))
            .collect();
        let beside = beside();
        let mut done = Vec::with_capacity(items.len());
        for worker in workers {
            match worker.join() {
                Ok(part) => done.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        (done, beside)
    });
    done.sort_by_key(|(at, _)| *at);
    (done.into_iter().map(|(_, r)| r).collect(), beside)
}
