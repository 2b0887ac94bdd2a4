//! Packages for RPM, of the same trees: `packaging/rpm/nodewise.spec`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::tree::{PACKAGES, Trees, files_of, walk};
use super::{Packaging, empty};
use crate::platform::Platform;
use crate::program;

/// The packages, by the names that RPM's distributions would give them.
const NAMES: [&str; 4] = ["nodewise", "nodewise-numactl", "nodewise-libnuma", "nodewise-libnuma-devel"];

/// Makes all of them.
pub fn make(packaging: &Packaging, trees: &Trees) -> Result<Vec<PathBuf>> {
    let work = packaging.work("rpm");
    empty(&work)?;
    let (tree, lists) = (work.join("tree"), work.join("lists"));
    fs::create_dir_all(&lists)?;
    for (package, name) in PACKAGES.into_iter().zip(NAMES) {
        let list = lay_out(&trees.root(package), &tree, packaging.platform)?;
        fs::write(lists.join(name), list)?;
    }
    let machine = packaging.platform.kernel();
    let mut command = Command::new("rpmbuild");
    command.args(["-bb", "--quiet", "--target", machine]);
    let library = "Provides: libnuma.so.1()(64bit)";
    let folder = work.display();
    let definitions = [
        format!("_topdir {folder}/top"),
        format!("_rpmdir {folder}/made"),
        "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm".to_owned(),
        "_buildhost nodewise".to_owned(),
        "_binary_payload w19.zstdio".to_owned(),
        "use_source_date_epoch_as_buildtime 1".to_owned(),
        "clamp_mtime_to_source_date_epoch 1".to_owned(),
        "build_mtime_policy clamp_to_source_date_epoch".to_owned(),
        "__os_install_post %{nil}".to_owned(),
        "debug_package %{nil}".to_owned(),
        "_build_id_links none".to_owned(),
        format!("nodewise_version {}", packaging.version),
        format!("nodewise_libc {}", trees.libc),
        "nodewise_bits (64bit)".to_owned(),
        format!("nodewise_library_provides {library}"),
        format!("nodewise_tree {}", tree.display()),
        format!("nodewise_lists {}", lists.display()),
    ];
    for definition in &definitions {
        command.args(["--define", definition]);
    }
    command.arg(packaging.root.join("packaging/rpm/nodewise.spec"));
    program::quiet(command.env("SOURCE_DATE_EPOCH", packaging.date.to_string()))?;
    let mut made = Vec::new();
    for file in files_of(&work.join("made"))? {
        let to = packaging.out.join(file.file_name().unwrap_or_default());
        fs::copy(&file, &to).with_context(|| to.display().to_string())?;
        made.push(to);
    }
    Ok(made)
}

/// Copies one of Debian's trees to where RPM's distributions have its files, and lists them.
fn lay_out(from: &Path, to: &Path, platform: Platform) -> Result<String> {
    let multiarch = format!("usr/lib/{}", platform.triplet());
    let mut list = String::new();
    walk(from, &mut |path| {
        let inside = path.strip_prefix(from).unwrap_or(path).to_string_lossy().into_owned();
        let metadata = fs::symlink_metadata(path)?;
        if metadata.is_dir() || inside.starts_with("usr/share/lintian") {
            return Ok(());
        }
        let inside = match inside.strip_prefix(&multiarch) {
            Some(rest) => format!("usr/lib64{rest}"),
            None => inside
                .replace("lib/systemd/system/", "usr/lib/systemd/system/")
                .replace("vendor-completions", "site-functions"),
        };
        let file = to.join(&inside);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        if metadata.is_symlink() {
            symlink(fs::read_link(path)?, &file)?;
        } else {
            fs::copy(path, &file)?;
        }
        // RPM's distributions mark shared libraries as programs, Debian does not.
        let mode = if inside.contains(".so.") && metadata.is_file() { "%attr(0755,root,root) " } else { "" };
        list += &format!("{mode}/{inside}\n");
        Ok(())
    })?;
    Ok(list)
}
