//! Finds `libdevice.10.bc`, NVIDIA's library of mathematical functions, which kernels with `log`, `exp` or
//! `tanh` are linked with.
//!
//! In: environment variables and directories. Out: the root of a CUDA toolkit for `CUDA_PATH`, or every
//! place that was searched. NVIDIA's driver does not contain the file. The device library looks only at
//! `CUDA_PATH` and four fixed directories, and only when it compiles the first kernel that needs it. Many
//! machines have the file elsewhere: in a conda environment, in a Python package, or under Debian's name.
//! Opens no device and downloads nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// The file below the root of a toolkit.
const IN_TOOLKIT: &str = "nvvm/libdevice/libdevice.10.bc";

/// Variables that may name the root of a toolkit, the device library's own first.
const VARIABLES: [&str; 4] = ["CUDA_PATH", "CUDA_HOME", "CUDA_ROOT", "CONDA_PREFIX"];

/// Directories of installed toolkits. A `*` at the end stands for version numbers.
const TOOLKITS: [&str; 5] =
    ["/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda", "/usr/lib/cuda", "/usr"];

/// The file under other names: Debian's toolkit.
const BARE_FILES: [&str; 1] = ["/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc"];

/// Directories below which Python keeps packages.
const PYTHONS: [&str; 4] = ["/usr/lib", "/usr/local/lib", "/opt/conda/lib", "/usr/lib64"];

/// The file in Python packages: NVIDIA's compiler package (`*` is `cuda_nvcc` or `cu13`), and Triton,
/// which every PyTorch with CUDA brings.
const IN_PYTHON: [&str; 2] =
    ["nvidia/*/nvvm/libdevice/libdevice.10.bc", "triton/backends/nvidia/lib/libdevice.10.bc"];

/// Where to search. Tests replace both parts.
pub(super) struct Search {
    /// Environment variables and their values.
    variables: Vec<(&'static str, PathBuf)>,
    /// Put before absolute directories; `/` outside tests.
    system: PathBuf,
}

/// Where the file was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Libdevice {
    /// In a toolkit with this root.
    Toolkit(PathBuf),
    /// Alone, without the directories of a toolkit around it.
    Bare(PathBuf),
}

impl Search {
    #[cfg(feature = "cuda")]
    pub(super) fn on_this_machine() -> Search {
        let names = VARIABLES.into_iter().chain(["VIRTUAL_ENV", "HOME"]);
        let value = |name| std::env::var_os(name).map(|value| (name, PathBuf::from(value)));
        Search { variables: names.filter_map(value).collect(), system: PathBuf::from("/") }
    }

    /// The first place that has the file. Toolkits come first, because the user chose them.
    pub(super) fn find(&self) -> Option<Libdevice> {
        let toolkit = self.toolkits().into_iter().find(|root| root.join(IN_TOOLKIT).is_file());
        toolkit.map(Libdevice::Toolkit).or_else(|| {
            let bare = self.bare_files().into_iter().find(|file| file.is_file())?;
            Some(match bare.to_str().and_then(|path| path.strip_suffix(IN_TOOLKIT)) {
                Some(root) => Libdevice::Toolkit(PathBuf::from(root)),
                None => Libdevice::Bare(bare),
            })
        })
    }

    /// Every place, for the message that says that none of them has the file.
    pub(super) fn places(&self) -> Vec<PathBuf> {
        let toolkits = self.toolkits().into_iter().map(|root| root.join(IN_TOOLKIT));
        toolkits.chain(self.bare_files()).collect()
    }

    fn toolkits(&self) -> Vec<PathBuf> {
        let named = VARIABLES.iter().filter_map(|name| self.variable(name));
        let installed = TOOLKITS.iter().flat_map(|pattern| expand(&self.at(pattern)));
        named.chain(installed).collect()
    }

    fn bare_files(&self) -> Vec<PathBuf> {
        let system = BARE_FILES.iter().map(|file| self.at(file));
        system.chain(self.python_packages()).collect()
    }

    fn python_packages(&self) -> Vec<PathBuf> {
        let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"]
            .iter()
            .filter_map(|name| self.variable(name).map(|root| root.join("lib")));
        let user = self.variable("HOME").map(|home| home.join(".local/lib"));
        let libraries = environments.chain(user).chain(PYTHONS.iter().map(|lib| self.at(lib)));
        let packages = libraries.flat_map(|lib| expand(&lib.join("python3*"))).flat_map(|python| {
            ["site-packages", "dist-packages"].map(|packages| python.join(packages))
        });
        let packages: Vec<_> = packages.collect();
        let inside = |packages: &PathBuf| IN_PYTHON.map(|file| expand(&packages.join(file)));
        packages.iter().flat_map(inside).flatten().collect()
    }

    fn variable(&self, name: &str) -> Option<PathBuf> {
        let set = self.variables.iter().find(|(variable, _)| *variable == name);
        set.map(|(_, value)| value.clone())
    }

    fn at(&self, absolute: &str) -> PathBuf {
        self.system.join(absolute.trim_start_matches('/'))
    }
}

/// The paths that a pattern stands for. A component with a `*` at its end matches names that begin with
/// the rest; a pattern without one stands for itself. Newest version last in the alphabet, so first here.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let name = part.as_os_str().to_string_lossy();
        found = match name.strip_suffix('*') {
            None => found.into_iter().map(|path| path.join(part)).collect(),
            Some(prefix) => found.iter().flat_map(|path| names_with(path, prefix)).collect(),
        };
    }
    found
}

fn names_with(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    let mut paths: Vec<_> = named.map(|entry| entry.path()).collect();
    paths.sort_unstable_by(|a, b| b.cmp(a));
    paths
}

/// A directory with the layout of a toolkit around a file that has none: a link below `cache`.
pub(super) fn toolkit_around(file: &Path, cache: &Path) -> std::io::Result<PathBuf> {
    let root = cache.join("cuda");
    let link = root.join(IN_TOOLKIT);
    if fs::read_link(&link).is_ok_and(|target| target == file) {
        return Ok(root);
    }
    fs::create_dir_all(link.parent().unwrap_or(&root))?;
    // Another process may do the same at this moment: the rename replaces its link by an equal one.
    let draft = link.with_extension(format!("{}", std::process::id()));
    std::os::unix::fs::symlink(file, &draft)?;
    fs::rename(&draft, &link)?;
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    struct Machine {
        root: TempDir,
        search: Search,
    }

    impl Machine {
        fn new() -> Machine {
            let root = tempfile::tempdir().unwrap();
            let search = Search { variables: Vec::new(), system: root.path().to_path_buf() };
            Machine { root, search }
        }

        fn with_file(self, path: &str) -> Machine {
            let path = self.root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "BC").unwrap();
            self
        }

        fn with_variable(mut self, name: &'static str, value: &str) -> Machine {
            self.search.variables.push((name, self.root.path().join(value)));
            self
        }

        fn finds_toolkit(&self, root: &str) {
            let expected = Libdevice::Toolkit(self.root.path().join(root));
            let found = self.search.find();
            // A root taken from a path keeps its last slash.
            let found = found.map(|found| match found {
                Libdevice::Toolkit(root) => Libdevice::Toolkit(root.components().collect()),
                bare => bare,
            });
            assert_eq!(found, Some(expected));
        }
    }

    #[test]
    fn an_installed_toolkit_is_found_and_the_newest_version_preferred() {
        let old = "usr/local/cuda-12.2/nvvm/libdevice/libdevice.10.bc";
        Machine::new().with_file(old).finds_toolkit("usr/local/cuda-12.2");
        let both = Machine::new().with_file(old);
        let both = both.with_file("usr/local/cuda-12.8/nvvm/libdevice/libdevice.10.bc");
        both.finds_toolkit("usr/local/cuda-12.8");
    }

    #[test]
    fn a_variable_comes_first_and_one_that_points_nowhere_is_passed_over() {
        let machine = Machine::new()
            .with_file("usr/local/cuda/nvvm/libdevice/libdevice.10.bc")
            .with_file("mine/nvvm/libdevice/libdevice.10.bc");
        machine.finds_toolkit("usr/local/cuda");
        let machine = machine.with_variable("CUDA_PATH", "nowhere");
        machine.finds_toolkit("usr/local/cuda");
        machine.with_variable("CUDA_HOME", "mine").finds_toolkit("mine");
    }

    #[test]
    fn conda_and_python_packages_are_found() {
        let conda = Machine::new().with_variable("CONDA_PREFIX", "conda/envs/tts");
        conda
            .with_file("conda/envs/tts/nvvm/libdevice/libdevice.10.bc")
            .finds_toolkit("conda/envs/tts");
        let package = "venv/lib/python3.11/site-packages/nvidia/cuda_nvcc";
        Machine::new()
            .with_variable("VIRTUAL_ENV", "venv")
            .with_file(&format!("{package}/nvvm/libdevice/libdevice.10.bc"))
            .finds_toolkit(package);
    }

    #[test]
    fn a_file_without_a_toolkit_gets_one_around_it() {
        let triton = "home/.local/lib/python3.12/site-packages/triton/backends/nvidia/lib";
        let machine = Machine::new()
            .with_variable("HOME", "home")
            .with_file(&format!("{triton}/libdevice.10.bc"));
        let Some(Libdevice::Bare(file)) = machine.search.find() else {
            panic!("not found as a bare file");
        };
        let cache = machine.root.path().join("cache");
        for _ in 0..2 {
            let root = toolkit_around(&file, &cache).unwrap();
            assert_eq!(fs::read(root.join(IN_TOOLKIT)).unwrap(), b"BC");
        }
        // A new file replaces the link.
        let moved = file.with_file_name("moved.bc");
        fs::rename(&file, &moved).unwrap();
        let root = toolkit_around(&moved, &cache).unwrap();
        assert_eq!(fs::read_link(root.join(IN_TOOLKIT)).unwrap(), moved);
    }

    #[test]
    fn debians_toolkit_is_found() {
        let machine =
            Machine::new().with_file("usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc");
        assert!(matches!(machine.search.find(), Some(Libdevice::Bare(_))));
    }

    #[test]
    fn a_machine_without_the_file_lists_every_place() {
        let machine = Machine::new().with_variable("CUDA_PATH", "nowhere");
        assert_eq!(machine.search.find(), None);
        let places = machine.search.places();
        assert!(places.len() >= 5, "{places:?}");
        assert_eq!(places[0], machine.root.path().join("nowhere").join(IN_TOOLKIT));
    }
}
