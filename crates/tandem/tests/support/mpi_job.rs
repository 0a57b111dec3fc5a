//! A job of several ranks under the real `mpirun`, for tests that disturb it.
//!
//! Every rank writes its messages and its exit code to files of its own. `mpirun` passes neither on reliably: while
//! it ends a job it sleeps and forwards nothing, and when the first rank has ended it may kill the next one before
//! its last line was read. Such a job is judged by its files: what each rank said, exit codes, record, checkpoints.

use super::TestDir;
use super::runs::newest;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest that the ranks of a disturbed job may take to end.
pub const END_WITHIN: Duration = Duration::from_secs(30);
/// The longest that a job may take to start, on a slow machine.
const START_WITHIN: Duration = Duration::from_secs(240);
/// Time after which Open MPI sends SIGTERM to the ranks of a job that ends, and after as much again SIGKILL. On a
/// machine with a load of ten for each core, ranks were seen to need 15 s from SIGTERM to their end.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs a rank. A signal reaches the whole process group: the shell must outlive it to write the exit code.
const RANK: &str = r#"
trap : TERM INT USR1
"$@" 2>"$JOB_FILES/said-$OMPI_COMM_WORLD_RANK"
code=$?
echo "$code" >"$JOB_FILES/code-$OMPI_COMM_WORLD_RANK"
[ "$code" -lt 128 ] || kill -KILL $$
exit "$code"
"#;

/// `mpirun` with so many ranks of `program`.
pub fn mpirun(dir: &TestDir, ranks: usize, program: &[&str]) -> Command {
    let ranks = ranks.to_string();
    let shared = dir.path("shared-memory");
    fs::create_dir_all(&shared).expect("our own directory");
    let (shared, pause) = (shared.display().to_string(), KILL_TIMEOUT.as_secs().to_string());
    let mut all = vec!["-np", &ranks, "--oversubscribe", "--bind-to", "none"];
    all.extend(["--mca", "btl", "self,vader", "--mca", "odls_base_sigkill_timeout", &pause]);
    // What a killed job leaves behind is removed with the test's directory.
    all.extend(["--mca", "btl_vader_backing_directory", &shared]);
    all.extend(program);
    let mut command = dir.with_test_env(Command::new("mpirun"), &all);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("TMPDIR", dir.path(""));
    command
}

/// A job that runs. Everything it started ends when this is dropped.
pub struct MpiJob<'a> {
    dir: &'a TestDir,
    /// New for every job: the shell of a killed rank may write its exit code when the next job has started.
    files: TempDir,
    ranks: usize,
    pub mpirun: Child,
}

impl<'a> MpiJob<'a> {
    /// Starts the program as so many ranks.
    pub fn start(dir: &'a TestDir, ranks: usize, args: &[&str]) -> MpiJob<'a> {
        let files = tempfile::tempdir_in(dir.path("")).expect("our own directory");
        let program = ["sh", "-c", RANK, "rank", env!("CARGO_BIN_EXE_tandem")];
        let mut command = mpirun(dir, ranks, &[&program[..], args].concat());
        let said = fs::File::create(files.path().join("mpirun")).expect("our own directory");
        command.stdout(Stdio::null()).stderr(said).env("JOB_FILES", files.path());
        MpiJob { dir, files, ranks, mpirun: command.spawn().expect("mpirun is installed") }
    }

    /// Waits for a checkpoint that is newer than `after`.
    #[track_caller]
    pub fn wait_for_checkpoint(&mut self, after: Option<u64>) {
        let begun = Instant::now();
        while newest(&self.dir.path("run")) <= after {
            let ended = self.mpirun.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", self.all_said());
            assert!(begun.elapsed() < START_WITHIN, "no checkpoint: {}", self.all_said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the process of a rank exists.
    #[track_caller]
    pub fn wait_for_rank(&self, rank: usize) {
        let begun = Instant::now();
        while self.process(rank).is_none() && self.code(rank).is_none() {
            assert!(begun.elapsed() < START_WITHIN, "rank {rank}: {}", self.all_said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal to one rank. One that has ended gets none.
    pub fn signal(&self, rank: usize, signal: Signal) {
        if let Some(process) = self.process(rank) {
            let _ = kill_process(process, signal);
        }
    }

    pub fn signal_mpirun(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.mpirun), signal).expect("not waited for yet");
    }

    /// Waits until these ranks have ended, and returns how long that took.
    #[track_caller]
    pub fn wait_for_end(&self, ranks: &[usize], limit: Duration) -> Duration {
        let begun = Instant::now();
        while let Some(rank) = ranks.iter().find(|rank| self.code(**rank).is_none()) {
            let said = || self.all_said();
            assert!(
                begun.elapsed() < limit,
                "no exit code of rank {rank} in {limit:?}: {}",
                said()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        begun.elapsed()
    }

    /// The exit code of a rank; 128 and the number of the signal where one ended it.
    pub fn code(&self, rank: usize) -> Option<i32> {
        fs::read_to_string(self.files.path().join(format!("code-{rank}"))).ok()?.trim().parse().ok()
    }

    /// What a rank wrote to stderr.
    pub fn said(&self, rank: usize) -> String {
        let bytes = fs::read(self.files.path().join(format!("said-{rank}"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// For the messages of failed tests.
    pub fn all_said(&self) -> String {
        let mpirun = fs::read_to_string(self.files.path().join("mpirun")).unwrap_or_default();
        let rank = |rank| format!("rank {rank}, exit {:?}:\n{}", self.code(rank), self.said(rank));
        let ranks: Vec<String> = (0..self.ranks).map(rank).collect();
        format!("mpirun:\n{mpirun}\n{}", ranks.join("\n"))
    }

    /// The program as this rank. Found by its environment: no other test has this home directory.
    fn process(&self, rank: usize) -> Option<Pid> {
        self.processes().into_iter().find_map(|(found, process)| (found == rank).then_some(process))
    }

    /// Rank and number of each process of this job that runs the program.
    fn processes(&self) -> Vec<(usize, Pid)> {
        let program = fs::canonicalize(env!("CARGO_BIN_EXE_tandem")).expect("built");
        let home = format!("HOME={}", self.dir.path("home").display());
        let numbers = fs::read_dir("/proc").unwrap();
        let numbers =
            numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let rank_of = |process: i32| {
            let folder = PathBuf::from(format!("/proc/{process}"));
            if fs::read_link(folder.join("exe")).ok()? != program {
                return None;
            }
            let environment = String::from_utf8(fs::read(folder.join("environ")).ok()?).ok()?;
            let mut variables = environment.split('\0');
            variables.clone().find(|variable| *variable == home)?;
            let rank =
                variables.find_map(|variable| variable.strip_prefix("OMPI_COMM_WORLD_RANK="))?;
            Some((rank.parse().ok()?, Pid::from_raw(process)?))
        };
        numbers.filter_map(rank_of).collect()
    }
}

impl Drop for MpiJob<'_> {
    fn drop(&mut self) {
        // `mpirun` would sleep for its whole time, twice, before it notices that all ranks have ended.
        let _ = self.mpirun.kill();
        let _ = self.mpirun.wait();
        for (_, process) in self.processes() {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}
