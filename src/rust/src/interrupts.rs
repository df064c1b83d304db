//! Interrupting the thread of R from a thread that waits for a deadline, and
//! telling those interrupts from the person's.

#[cfg(unix)]
pub(crate) use self::unix::*;
#[cfg(not(unix))]
pub(crate) use self::without::*;

#[cfg(unix)]
mod unix {
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
    use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
    use std::time::{Duration, Instant};
    use std::{mem, process, ptr, thread};

    /// An interrupt can be sent on this system.
    pub(crate) const ENFORCED: bool = true;

    /// A mark in the count of the person's interrupts.
    pub(crate) struct Person(u32);

    impl Person {
        pub(crate) fn now() -> Self {
            Self(PERSON.load(Ordering::SeqCst))
        }

        pub(crate) fn has_interrupted(&self) -> bool {
            PERSON.load(Ordering::SeqCst) != self.0
        }
    }

    /// Puts our handler before R's, so that we see who interrupts. Called on the
    /// thread of R when the first deadline is armed.
    pub(crate) fn listen() {
        // SAFETY: a zeroed sigaction is valid, and the handler is async-signal-safe.
        unsafe {
            let mut old: libc::sigaction = mem::zeroed();
            libc::sigaction(libc::SIGINT, ptr::null(), &mut old);
            if old.sa_sigaction == handler() {
                return;
            }
            BEFORE.store(old.sa_sigaction, Ordering::SeqCst);
            BEFORE_FLAGS.store(old.sa_flags as u32, Ordering::SeqCst);
            LISTENING.store(true, Ordering::SeqCst);
            install(handler(), old.sa_flags | libc::SA_SIGINFO);
        }
    }

    /// Puts R's handler back, unless something else has been put over ours.
    pub(crate) fn unlisten() {
        LISTENING.store(false, Ordering::SeqCst);
        // SAFETY: as above.
        unsafe {
            let mut now: libc::sigaction = mem::zeroed();
            libc::sigaction(libc::SIGINT, ptr::null(), &mut now);
            if now.sa_sigaction == handler() {
                let flags = BEFORE_FLAGS.load(Ordering::SeqCst) as libc::c_int;
                install(BEFORE.load(Ordering::SeqCst), flags);
            }
        }
    }

    /// How many interrupts the thread has sent. Each has arrived: it was made
    /// under the lock taken here, and a system call takes delivery of it.
    pub(crate) fn sent() -> u32 {
        let Some(shared) = existing() else { return 0 };
        let sent = shared.lock().sent;
        if sent != 0 {
            // SAFETY: no preconditions.
            unsafe { libc::sched_yield() };
        }
        sent
    }

    /// When to send the next interrupt, and how often from then on.
    pub(crate) fn plan(next: Option<Instant>, again: Duration) {
        if next.is_none() && existing().is_none() {
            return;
        }
        let Some(shared) = for_this_process() else {
            return;
        };
        let mut plan = shared.lock();
        plan.next = next;
        plan.again = again;
        // Waking later than needed is all the thread must be woken for.
        let late = match (next, plan.wakes) {
            (Some(next), Some(wakes)) => next < wakes,
            (Some(_), None) => true,
            (None, _) => false,
        };
        drop(plan);
        if late {
            shared.changed.notify_one();
        }
    }

    struct Shared {
        plan: Mutex<Plan>,
        changed: Condvar,
        process: u32,
    }

    struct Plan {
        next: Option<Instant>,
        again: Duration,
        wakes: Option<Instant>,
        sent: u32,
        target: libc::pthread_t,
    }

    impl Shared {
        fn lock(&self) -> MutexGuard<'_, Plan> {
            self.plan.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn watch(&self) {
            let mut plan = self.lock();
            loop {
                let now = Instant::now();
                plan = match plan.next {
                    Some(next) if next <= now => {
                        plan.next = Some(now + plan.again);
                        plan.sent = plan.sent.wrapping_add(1).max(1);
                        // SAFETY: the thread of R lives as long as the process.
                        unsafe { libc::pthread_kill(plan.target, libc::SIGINT) };
                        plan
                    }
                    Some(next) => {
                        plan.wakes = Some(next);
                        let waited = self.changed.wait_timeout(plan, next - now);
                        waited.unwrap_or_else(PoisonError::into_inner).0
                    }
                    None => {
                        plan.wakes = None;
                        let woken = self.changed.wait(plan);
                        woken.unwrap_or_else(PoisonError::into_inner)
                    }
                };
            }
        }
    }

    /// What this process and its thread share. A fork leaves the thread behind,
    /// and perhaps a held lock: the child never touches what it inherited.
    fn existing() -> Option<&'static Shared> {
        let shared = SHARED.load(Ordering::SeqCst);
        // SAFETY: only leaked boxes are stored, and never freed.
        let shared = unsafe { shared.as_ref() }?;
        (shared.process == process::id()).then_some(shared)
    }

    fn for_this_process() -> Option<&'static Shared> {
        if let Some(shared) = existing() {
            return Some(shared);
        }
        let plan = Plan {
            next: None,
            again: Duration::MAX,
            wakes: None,
            sent: 0,
            // SAFETY: no preconditions.
            target: unsafe { libc::pthread_self() },
        };
        let shared: &'static Shared = Box::leak(Box::new(Shared {
            plan: Mutex::new(plan),
            changed: Condvar::new(),
            process: process::id(),
        }));
        start(shared)?;
        SHARED.store(ptr::from_ref(shared).cast_mut(), Ordering::SeqCst);
        Some(shared)
    }

    /// Starts the thread with every signal blocked, so that signals for the
    /// process go to the thread of R.
    fn start(shared: &'static Shared) -> Option<()> {
        // SAFETY: both sets are initialised by the calls that fill them.
        unsafe {
            let mut all: libc::sigset_t = mem::zeroed();
            let mut before: libc::sigset_t = mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let thread = thread::Builder::new()
                .name("warrant-watchdog".into())
                .stack_size(128 * 1024)
                .spawn(|| shared.watch());
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
            thread.ok().map(drop)
        }
    }

    /// Counts the person's interrupts and hands every one on. R's own handler
    /// puts itself back when it runs, so ours does the same after it.
    extern "C" fn on_interrupt(
        signal: libc::c_int,
        info: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    ) {
        // SAFETY: the kernel passes a valid info; the older handler is called in
        // the form it was installed in; all calls are async-signal-safe.
        unsafe {
            let own = !info.is_null() && is_from_here(&*info);
            if !own {
                PERSON.fetch_add(1, Ordering::SeqCst);
            }
            let before = BEFORE.load(Ordering::SeqCst);
            let flags = BEFORE_FLAGS.load(Ordering::SeqCst) as libc::c_int;
            if before == libc::SIG_DFL {
                if !own {
                    install(libc::SIG_DFL, flags);
                    libc::raise(libc::SIGINT);
                }
                return;
            }
            if before != libc::SIG_IGN && flags & libc::SA_SIGINFO != 0 {
                let f: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    mem::transmute(before);
                f(signal, info, context);
            } else if before != libc::SIG_IGN {
                let f: extern "C" fn(libc::c_int) = mem::transmute(before);
                f(signal);
            }
            if LISTENING.load(Ordering::SeqCst) {
                install(handler(), flags | libc::SA_SIGINFO);
            }
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    unsafe fn is_from_here(info: &libc::siginfo_t) -> bool {
        info.si_code == libc::SI_TKILL && info.si_pid() == libc::getpid()
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    unsafe fn is_from_here(info: &libc::siginfo_t) -> bool {
        info.si_pid() == libc::getpid()
    }

    unsafe fn install(handler: usize, flags: libc::c_int) {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGINT, &action, ptr::null_mut());
    }

    fn handler() -> usize {
        on_interrupt as *const () as usize
    }

    static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
    static PERSON: AtomicU32 = AtomicU32::new(0);
    static BEFORE: AtomicUsize = AtomicUsize::new(0);
    static BEFORE_FLAGS: AtomicU32 = AtomicU32::new(0);
    static LISTENING: AtomicBool = AtomicBool::new(false);
}

/// Without signals a passed deadline is only noticed when the call is back.
#[cfg(not(unix))]
mod without {
    use std::time::{Duration, Instant};

    pub(crate) const ENFORCED: bool = false;

    pub(crate) struct Person;

    impl Person {
        pub(crate) fn now() -> Self {
            Self
        }

        pub(crate) fn has_interrupted(&self) -> bool {
            false
        }
    }

    pub(crate) fn listen() {}
    pub(crate) fn unlisten() {}
    pub(crate) fn sent() -> u32 {
        0
    }
    pub(crate) fn plan(_next: Option<Instant>, _again: Duration) {}
}
