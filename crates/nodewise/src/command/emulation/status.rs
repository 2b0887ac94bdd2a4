//! `nodewise emulation status`.

use std::path::Path;
use std::time::Duration;

use nodewise_boot::eeprom::{self, BankLow as Bits, EepromError};
use nodewise_boot::{BootError, Root, Stamp, line, plan};
use nodewise_machine::KernelRelease;
use nodewise_source::tree::Tree;
use nodewise_source::{Detail, boot};
use nodewise_view::digest::emulation::{BankLow, Board, Request, Status, When, advice};
use nodewise_view::{json, text};

use super::facts::Facts;
use super::image::Image;
use crate::cli::Global;
use crate::cli::emulation::Status as Args;
use crate::failure::{Failure, Outcome};
use crate::{input, output};

/// The folder of a Raspberry Pi's boot partition, and the one of old.
const CONFIGS: [&str; 2] = ["/boot/firmware/config.txt", "/boot/config.txt"];

/// Runs `emulation status`.
pub(super) fn run(args: &Args, global: &Global) -> Outcome {
    let is_live = input::is_live(&global.machine);
    let image = args.root.as_deref().filter(|root| is_live && *root != Path::new("/"));
    let status = match image {
        Some(folder) => of_image(folder)?,
        None => of_machine(args, global, is_live)?,
    };
    let json = || json::emulation::status(&status);
    output::show(args.json, global.color, json, |style| text::emulation::status(&status, style))?;
    Ok(0)
}

/// The facts of an image: which kernels it has and what its boot files ask them for. What runs here, and on
/// which board, is another machine's.
fn of_image(folder: &Path) -> Result<Status, Failure> {
    let root = Root::open(folder).map_err(Failure::usage)?;
    let (requests, boot_files) = match next_start(&root) {
        Ok(next) => (next, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Ok(Status {
        image: Some(folder.display().to_string()),
        kernel: None,
        support: Image::from_root(&root).map_err(Failure::cannot)?.support(),
        requests,
        boot_files,
        effect: None,
        ignored: None,
        no_log: None,
        board: None,
        vain: Vec::new(),
        advice: Vec::new(),
    })
}

/// The facts of a machine: this one, or that of a file.
fn of_machine(args: &Args, global: &Global, is_live: bool) -> Result<Status, Failure> {
    let input = input::load(&global.machine, Detail::Full)?;
    let facts = Facts::from_input(&input, is_live);
    let folder = args.root.as_deref().or_else(|| boot_folder(global, is_live));
    let root = folder.map(Root::open).transpose().map_err(Failure::usage)?;
    let next = root.as_ref().map(next_start);
    let (next, boot_files) = match next {
        Some(Ok(next)) => (next, None),
        Some(Err(error)) => (Vec::new(), Some(error.to_string())),
        None => (Vec::new(), Some("not known: there are no boot files to look at".to_owned())),
    };
    let effect = facts.effect(&input.machine);
    let (running, again) = asked(&facts, &next);
    Ok(Status {
        image: None,
        kernel: input.machine.kernel.as_ref().map(|kernel| KernelRelease::text(kernel).to_owned()),
        support: facts.support.clone(),
        requests: running.into_iter().chain(again).chain(next).collect(),
        boot_files,
        advice: advice(&effect, facts.raspberry_pi().is_some()),
        effect: Some(effect),
        ignored: facts.ignored(),
        no_log: facts.no_log.clone(),
        board: input.tree().and_then(|tree| board(&facts, tree, root.as_ref(), is_live)),
        vain: input.tree().and_then(|tree| boot::vain_settings(tree, "numa_policy").ok()).unwrap_or_default(),
    })
}

/// The folder that stands for `/` where no one names one: of a capture that is a folder, its own.
fn boot_folder(global: &Global, is_live: bool) -> Option<&Path> {
    let named = Path::new(&global.machine);
    if is_live { Some(Path::new("/")) } else { Some(named).filter(|path| path.is_dir()) }
}

/// The file with the words of a firmware.
const FIRMWARE: &str = "the firmware's device tree";

/// Returns the requests to the running kernel, and by whom; and those of them that are there again at the
/// next start, whatever the boot files say: on a Raspberry Pi the words of the firmware's device tree,
/// and those of a boot loader that asks by itself.
fn asked(facts: &Facts, next: &[Request]) -> (Vec<Request>, Vec<Request>) {
    let request = |place: &str, line: &str| {
        let of = |prefix| line::value(line, prefix).map(str::to_owned);
        let (fake, policy) = (of(line::FAKE), of(line::POLICY));
        let asks = fake.is_some() || policy.is_some();
        asks.then(|| Request { place: place.to_owned(), when: When::Running, fake, policy })
    };
    let is_board = facts.raspberry_pi().is_some();
    let firmware = facts.firmware.as_deref().and_then(|line| request(FIRMWARE, line));
    // A Raspberry Pi's boot loader puts words of its own between the firmware's and those of its file.
    let others = firmware.iter().chain(next).any(|request| request.fake.is_some());
    let by_loader = is_board && facts.command_line_fake().is_some() && !others;
    let place = if by_loader { BY_LOADER } else { "the kernel's command line" };
    let kernel = facts.command_line.as_deref().and_then(|line| request(place, line));
    // The policy of the loader's line is the device tree's, whose words are in it too.
    let loaders = kernel.clone().filter(|_| by_loader);
    let loaders = loaders.map(|kernel| Request {
        place: "the boot loader, by itself".to_owned(),
        policy: None,
        ..kernel
    });
    let again = firmware.clone().filter(|_| is_board).into_iter().chain(loaders);
    let again = again.map(|request| Request { when: When::Next, ..request }).collect();
    (firmware.into_iter().chain(kernel).collect(), again)
}

/// The place of words that a Raspberry Pi's boot loader adds by itself.
const BY_LOADER: &str = "the kernel's command line, put there by the boot loader";

/// Reads the requests of the boot files.
fn next_start(root: &Root) -> Result<Vec<Request>, BootError> {
    let asked = plan::asked(root)?.into_iter();
    let request = |asked: plan::Asked| Request {
        place: asked.path,
        when: When::Next,
        fake: asked.fake,
        policy: asked.policy,
    };
    Ok(asked.map(request).collect())
}

/// The peculiarities of a Raspberry Pi.
fn board(facts: &Facts, tree: &Tree, root: Option<&Root>, is_live: bool) -> Option<Board> {
    let number = facts.raspberry_pi()?;
    let built = boot::boot_loader_built(tree).ok().flatten();
    let day = |built: Duration| {
        let stamp = Stamp::since_1970(built).to_string();
        format!("{}-{}-{}", &stamp[..4], &stamp[4..6], &stamp[6..8])
    };
    let log = facts.log.as_ref().filter(|log| log.whole || log.card_queue);
    Some(Board {
        model: facts.board.clone()?,
        banklow: Bits::default_of(number).map(|usual| {
            if is_live { banklow(usual) } else { Err("the EEPROM is read on the board itself".to_owned()) }
        }),
        boot_loader: built.map(day),
        card_queue_asked: root.and_then(card_queue),
        card_queue_used: log.map(|log| log.card_queue),
        sleep: boot::sleep(tree).ok().flatten().map(|choice| (choice.words, choice.chosen)),
    })
}

/// The value in the EEPROM, or the boot loader's own.
fn banklow(usual: Bits) -> Result<BankLow, String> {
    let set = eeprom::read(None).and_then(|config| eeprom::banklow(&config));
    let set = set.map_err(|error: EepromError| error.to_string())?;
    let value = set.unwrap_or(usual);
    Ok(BankLow { value: value.bits(), is_set: set.is_some(), layout: value.layout(), nodes: value.nodes() })
}

/// Whether `config.txt` asks for the command queue of memory cards.
fn card_queue(root: &Root) -> Option<bool> {
    let config = CONFIGS.into_iter().find_map(|path| root.read(path).ok().flatten())?;
    let config = String::from_utf8_lossy(&config).into_owned();
    let asks = |line: &str| {
        let parameters = line.trim().strip_prefix("dtparam=")?;
        let queue = parameters.split(',').find(|parameter| parameter.starts_with("sd_cqe"))?;
        Some(!matches!(queue.split_once('='), Some((_, "off" | "0"))))
    };
    Some(config.lines().filter_map(asks).next_back().unwrap_or(false))
}
