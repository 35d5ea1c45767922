//! The folders that tasks can work in.
//!
//! A folder is known by its canonical path, and told from another of that path by device and inode. An address carries
//! both, so that a task of a folder that was replaced is not looked up in the new one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use toolshelf_core::RootDescriptor;
use toolshelf_core::abi::Input;
use toolshelf_core::address::Locator;
use toolshelf_core::live::MachineRoot;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::root::file_in_root;
use toolshelf_host::Roots;
use toolshelf_host::task_ports::SelectedRoot;
use toolshelf_sandbox::folder::{Folder, FolderFault, Identity};

/// The folders. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct MachineRoots {
    inner: Rc<Inner>,
}

#[derive(Debug)]
struct Inner {
    environment: String,
    /// Canonical paths; of a folder that was not there at the start, the path as it was given.
    paths: Vec<String>,
    /// Which folder stood at a path when it was last chosen for a task.
    chosen: RefCell<BTreeMap<String, Identity>>,
}

impl MachineRoots {
    /// The folders at `paths`. One that is not there yet is unavailable until it is.
    ///
    /// # Errors
    /// [`Code::TaskRootUnavailable`] for a path that no root can have.
    pub(crate) fn new(paths: &[PathBuf], environment: &str) -> Result<Self, Refusal> {
        let mut known: Vec<String> = Vec::new();
        for given in paths {
            let path = fs::canonicalize(given).or_else(|_| std::path::absolute(given));
            let path = path.unwrap_or_else(|_| given.clone()).into_os_string().into_string();
            let path = path.map_err(|path| unavailable(&path.to_string_lossy(), "its path is not UTF-8"))?;
            let descriptor = descriptor(&path, environment);
            let read = RootDescriptor::read(&serde_json::to_value(descriptor).unwrap_or_default());
            read.map_err(|fault| unavailable(&path, &fault.to_string()))?;
            if !known.contains(&path) {
                known.push(path);
            }
        }
        let inner = Inner { environment: environment.to_owned(), paths: known, chosen: RefCell::default() };
        Ok(Self { inner: Rc::new(inner) })
    }

    /// Their paths.
    pub(crate) fn paths(&self) -> &[String] {
        &self.inner.paths
    }

    /// What a client is shown of them.
    pub(crate) fn listed(&self) -> Vec<MachineRoot> {
        let listed = |path: &String| MachineRoot {
            root: descriptor(path, &self.inner.environment),
            available: open(path).is_ok(),
        };
        self.inner.paths.iter().map(listed).collect()
    }

    /// The root at `path`, or the first, for a new task.
    ///
    /// # Errors
    /// [`Code::TaskRootUnavailable`] and [`Code::TaskRootReplaced`].
    pub(crate) fn choose(&self, path: Option<&str>) -> Result<SelectedRoot, Refusal> {
        let path = match path {
            Some(path) => self.find(path)?,
            None => self.inner.paths.first().ok_or_else(|| {
                let why = "no folder is set for tasks; name one in toolshelf.toml, or on the command line";
                Refusal::new(Code::TaskRootUnavailable, why)
            })?,
        };
        let (_, identity) = open(path)?;
        self.inner.chosen.borrow_mut().insert(path.clone(), identity);
        let descriptor = descriptor(path, &self.inner.environment);
        Ok(SelectedRoot { descriptor, identity: Some(identity) })
    }

    fn find(&self, path: &str) -> Result<&String, Refusal> {
        let named = |path: &str| self.inner.paths.iter().find(|known| *known == path);
        let canonical = || fs::canonicalize(path).ok()?.into_os_string().into_string().ok();
        let found = named(path).or_else(|| named(&canonical()?));
        found.ok_or_else(|| unavailable(path, "it is none of the folders that tasks can work in"))
    }

    /// The folder of a task that was admitted in this life.
    ///
    /// # Errors
    /// [`Code::TaskRootUnavailable`] and [`Code::TaskRootReplaced`].
    pub(crate) fn folder(&self, root: &RootDescriptor) -> Result<Folder, Refusal> {
        let RootDescriptor::Machine { path, .. } = root else {
            return Err(unavailable(&root.to_string(), "a machine works in its own folders"));
        };
        let (folder, identity) = open(self.find(path)?)?;
        match self.inner.chosen.borrow().get(path) {
            Some(chosen) if *chosen != identity => Err(replaced(path)),
            _ => Ok(folder),
        }
    }

    /// The bytes of a file of `root` for a tool's `input`. One that is larger than that buffer is not read.
    ///
    /// # Errors
    /// What [`folder`](Self::folder) and [`file_in_root`] say, [`Code::OverBudget`] and [`Code::FileUnavailable`].
    pub(crate) async fn read(
        &self,
        root: &RootDescriptor,
        path: &str,
        input: &Input,
    ) -> Result<Vec<u8>, Refusal> {
        let (path, most) = (file_path(path)?, input.max_bytes as usize);
        let read = in_folder(self.folder(root)?, path.clone(), move |folder, path| folder.read(path, most));
        read.await.map_err(|fault| {
            if let FolderFault::TooLarge(bytes) = fault
                && let Err(refusal) = input.check_size(bytes)
            {
                return refusal;
            }
            file_unavailable(&path, &fault)
        })
    }

    /// The bytes of a file of `root` that has `most` at most.
    ///
    /// # Errors
    /// What [`folder`](Self::folder) and [`file_in_root`] say, and [`Code::FileUnavailable`].
    pub(crate) async fn read_within(
        &self,
        root: &RootDescriptor,
        path: &str,
        most: usize,
    ) -> Result<Vec<u8>, Refusal> {
        let path = file_path(path)?;
        let read = in_folder(self.folder(root)?, path.clone(), move |folder, path| folder.read(path, most));
        read.await.map_err(|fault| file_unavailable(&path, &fault))
    }

    /// Writes a file of `root`, whole or not at all.
    ///
    /// # Errors
    /// What [`folder`](Self::folder) and [`file_in_root`] say, and [`Code::FileUnavailable`].
    pub(crate) async fn write(&self, root: &RootDescriptor, path: &str, bytes: &[u8]) -> Result<(), Refusal> {
        let (path, bytes) = (file_path(path)?, bytes.to_vec());
        let write =
            in_folder(self.folder(root)?, path.clone(), move |folder, path| folder.write(path, &bytes));
        write.await.map_err(|fault| file_unavailable(&path, &fault))
    }
}

/// Does what waits for a disk in a thread for that.
async fn in_folder<T: Send + 'static>(
    folder: Folder,
    path: String,
    work: impl FnOnce(&Folder, &str) -> Result<T, FolderFault> + Send + 'static,
) -> Result<T, FolderFault> {
    let done = tokio::task::spawn_blocking(move || work(&folder, &path)).await;
    done.unwrap_or_else(|err| Err(FolderFault::Io(std::io::Error::other(err))))
}

impl Roots for MachineRoots {
    fn selected(&self) -> Option<SelectedRoot> {
        self.choose(None).ok()
    }

    fn check_unchanged(&self, locator: &Locator) -> Result<(), Refusal> {
        let known = self.inner.paths.iter().find(|path| {
            locator.path.strip_prefix("machine:").is_some_and(|of_address| of_address == path.as_str())
        });
        let path = known.ok_or_else(|| {
            unavailable(&locator.path, "the task's folder is none of those that tasks can work in now")
        })?;
        let (_, (dev, ino)) = open(path)?;
        if (locator.dev, locator.ino) == (Some(dev), Some(ino)) { Ok(()) } else { Err(replaced(path)) }
    }
}

/// Checks a path inside a root. The journal's folder is protected at every depth: a folder inside may be a root as well.
fn file_path(path: &str) -> Result<String, Refusal> {
    let path = file_in_root(path)?;
    let mut rest = &*path;
    while let Some((_, inner)) = rest.split_once('/') {
        file_in_root(inner)?;
        rest = inner;
    }
    Ok(path)
}

/// Opens the folder at `path`, which must be where that path really leads.
fn open(path: &str) -> Result<(Folder, Identity), Refusal> {
    if let Ok(real) = fs::canonicalize(path)
        && real != Path::new(path)
    {
        return Err(replaced(path));
    }
    let opened = Folder::open(Path::new(path)).and_then(|folder| {
        let identity = folder.identity()?;
        Ok((folder, identity))
    });
    opened.map_err(|fault| unavailable(path, &fault.to_string()))
}

fn descriptor(path: &str, environment: &str) -> RootDescriptor {
    RootDescriptor::Machine { path: path.to_owned(), environment: Some(environment.to_owned()) }
}

fn unavailable(path: &str, why: &str) -> Refusal {
    Refusal::new(Code::TaskRootUnavailable, format!("the folder {:?} cannot be used: {why}", cut(path, 200)))
}

fn replaced(path: &str) -> Refusal {
    let why = format!("the folder at {:?} is another one than at admission", cut(path, 200));
    Refusal::new(Code::TaskRootReplaced, why)
}

fn file_unavailable(path: &str, fault: &FolderFault) -> Refusal {
    Refusal::new(Code::FileUnavailable, format!("{:?} of the task's folder: {fault}", cut(path, 120)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use toolshelf_core::Abi;

    use super::*;

    const ENVIRONMENT: &str = "env_0123456789abcdef";

    /// Two folders, and the roots over them.
    fn roots() -> (tempfile::TempDir, MachineRoots) {
        let dir = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(path.join("one")).unwrap();
        fs::create_dir(path.join("two")).unwrap();
        symlink(path.join("two"), path.join("link")).unwrap();
        let paths = [path.join("one"), path.join("link"), path.join("two"), path.join("gone")];
        (dir, MachineRoots::new(&paths, ENVIRONMENT).unwrap())
    }

    fn locator(root: &SelectedRoot) -> Locator {
        Locator {
            environment: ENVIRONMENT.into(),
            key_epoch: String::new(),
            instance: String::new(),
            placement: toolshelf_core::Placement::Machine,
            path: root.descriptor.to_string(),
            dev: root.identity.map(|(dev, _)| dev),
            ino: root.identity.map(|(_, ino)| ino),
            id: String::new(),
        }
    }

    #[test]
    fn the_first_is_the_usual_one_and_no_other_can_be_named() {
        let (dir, roots) = roots();
        let path = fs::canonicalize(dir.path()).unwrap();
        assert_eq!(roots.paths().len(), 3, "a link and what it leads to are one");
        let chosen = roots.choose(None).unwrap();
        assert_eq!(chosen.descriptor, descriptor(path.join("one").to_str().unwrap(), ENVIRONMENT));
        assert_eq!(roots.selected(), Some(chosen));
        let linked = roots.choose(path.join("link").to_str()).unwrap();
        assert_eq!(linked.descriptor, descriptor(path.join("two").to_str().unwrap(), ENVIRONMENT));
        for other in ["/", "", "one", path.to_str().unwrap(), path.join("one/..").to_str().unwrap()] {
            assert_eq!(roots.choose(Some(other)).unwrap_err().code, Code::TaskRootUnavailable, "{other}");
        }
        let available: Vec<_> = roots.listed().into_iter().map(|root| root.available).collect();
        assert_eq!(available, [true, true, false]);
        let gone = path.join("gone");
        assert_eq!(roots.choose(gone.to_str()).unwrap_err().code, Code::TaskRootUnavailable);
        fs::create_dir(&gone).unwrap();
        assert!(roots.choose(gone.to_str()).is_ok(), "it is there now");
        let none = MachineRoots::new(&[], ENVIRONMENT).unwrap();
        assert_eq!(none.choose(None).unwrap_err().code, Code::TaskRootUnavailable);
    }

    #[test]
    fn a_folder_that_was_replaced_is_noticed() {
        let (dir, roots) = roots();
        let one = fs::canonicalize(dir.path()).unwrap().join("one");
        let chosen = roots.choose(None).unwrap();
        let locator = locator(&chosen);
        assert_eq!(roots.check_unchanged(&locator), Ok(()));
        let aside = dir.path().join("aside");
        fs::rename(&one, &aside).unwrap();
        assert_eq!(roots.check_unchanged(&locator).unwrap_err().code, Code::TaskRootUnavailable);
        fs::create_dir(&one).unwrap();
        assert_eq!(roots.check_unchanged(&locator).unwrap_err().code, Code::TaskRootReplaced);
        assert_eq!(roots.folder(&chosen.descriptor).unwrap_err().code, Code::TaskRootReplaced);
        fs::remove_dir(&one).unwrap();
        symlink(&aside, &one).unwrap();
        assert_eq!(roots.check_unchanged(&locator).unwrap_err().code, Code::TaskRootReplaced);
        assert_eq!(roots.choose(None).unwrap_err().code, Code::TaskRootReplaced);
        fs::remove_file(&one).unwrap();
        fs::rename(&aside, &one).unwrap();
        assert_eq!(roots.check_unchanged(&locator), Ok(()));
        let foreign = Locator { path: "machine:/".into(), ..locator };
        assert_eq!(roots.check_unchanged(&foreign).unwrap_err().code, Code::TaskRootUnavailable);
    }

    #[tokio::test]
    async fn files_are_read_within_the_buffer_and_never_outside_or_in_the_journal() {
        let (dir, roots) = roots();
        let root = roots.choose(None).unwrap().descriptor;
        let input = &Abi::Buffer1.layout().inputs[0];
        roots.write(&root, "new/a.txt", b"text").await.unwrap();
        assert_eq!(roots.read(&root, "./new/a.txt", input).await.unwrap(), b"text");
        fs::create_dir(dir.path().join("one/.audit")).unwrap();
        fs::write(dir.path().join("one/.audit/log"), "").unwrap();
        fs::write(dir.path().join("one/large"), vec![0; 8_193]).unwrap();
        symlink("/etc/passwd", dir.path().join("one/link")).unwrap();
        for (path, code) in [
            ("large", Code::OverBudget),
            ("link", Code::FileUnavailable),
            ("none", Code::FileUnavailable),
            (".audit/log", Code::ProtectedAudit),
            ("new/.audit/log", Code::ProtectedAudit),
            ("../two/x", Code::OutsideRoot),
        ] {
            assert_eq!(roots.read(&root, path, input).await.unwrap_err().code, code, "{path}");
        }
        for (path, code) in [
            (".audit/log", Code::ProtectedAudit),
            ("a/b/.Audit/log", Code::ProtectedAudit),
            ("../x", Code::OutsideRoot),
            ("link", Code::FileUnavailable),
            ("link/x", Code::FileUnavailable),
            ("new", Code::FileUnavailable),
        ] {
            assert_eq!(roots.write(&root, path, b"x").await.unwrap_err().code, code, "{path}");
        }
        let page = RootDescriptor::Opfs { path: "v1".into() };
        assert_eq!(roots.read(&page, "x", input).await.unwrap_err().code, Code::TaskRootUnavailable);
    }
}
