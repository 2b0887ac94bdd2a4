//! Pictures as PNG: drawn where nodewise was built with `--features png`, refused before anything else otherwise.

use std::fs;
use std::path::Path;

use crate::nodewise::run;

/// Width and height by the first chunk of a PNG.
fn size(path: &Path) -> (u32, u32) {
    let bytes = fs::read(path).unwrap();
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n", "{}", path.display());
    assert_eq!(&bytes[12..16], b"IHDR");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

/// Twice the width and height of an SVG, in whole pixels.
fn doubled(path: &Path) -> (u32, u32) {
    let text = fs::read_to_string(path).unwrap();
    let number = |name: &str| {
        let value = text.split_once(&format!(" {name}=\"")).unwrap().1.split('"').next().unwrap();
        (value.parse::<f64>().unwrap() * 2.0).ceil() as u32
    };
    (number("width"), number("height"))
}

const COMMANDS: [&[&str]; 6] = [
    &["show", "--machine", "64x(4c 32G)"],
    &["show", "--machine", "2x(8c 64G) 2x(128G tier=22); dev=ib:mlx5_0@0", "--caches"],
    &["simulate", "cxl"],
    &["simulate", "database"],
    &["latency", "--quick", "--size=1M", "--rounds=1", "--json"],
    &["latency", "--sweep", "--quick", "--sizes=64K", "--json"],
];

#[test]
fn png_has_two_pixels_for_each_unit_of_the_svg_beside_it() {
    if !cfg!(feature = "png") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (svg, png) = (folder.path().join("a.svg"), folder.path().join("a.png"));
    for words in COMMANDS {
        let files = ["--svg", svg.to_str().unwrap(), "--png", png.to_str().unwrap()];
        let ran = run(&[words, &files].concat());
        assert_eq!(ran.code, Some(0), "{words:?}: {}", ran.stderr);
        assert_eq!(size(&png), doubled(&svg), "{words:?}");
        assert!(
            fs::metadata(&png).unwrap().len() > 5000,
            "{words:?}: a picture has more than a page's colour"
        );
        assert!(fs::read_to_string(&svg).unwrap().contains("prefers-color-scheme"), "{words:?}");
        fs::remove_file(&png).unwrap();
    }
}

#[test]
fn a_build_without_png_says_so_before_anything_is_measured() {
    if cfg!(feature = "png") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let png = folder.path().join("a.png");
    for words in COMMANDS {
        let ran = run(&[words, &["--png", png.to_str().unwrap()]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{words:?}: {}", ran.stderr);
        for part in ["without PNG", "rsvg-convert", "--features png"] {
            assert!(ran.stderr.contains(part), "{words:?}: {}", ran.stderr);
        }
        assert!(!png.exists());
    }
}

#[test]
fn pictures_exclude_the_same_options_in_both_formats() {
    for words in [&["show", "--json"][..], &["simulate", "cxl", "--csv"], &["maps", "1", "--range", "0-1000"]]
    {
        for option in ["--svg", "--png"] {
            let ran = run(&[words, &[option, "/tmp/x"]].concat());
            assert_eq!(ran.code, Some(2), "{words:?} {option}: {}", ran.stderr);
            assert!(ran.stderr.contains(option), "{words:?} {option}: {}", ran.stderr);
        }
    }
}
