//! Facts of an image about the kernels that it will start: nothing of the machine that it is changed on.

use nodewise_boot::{BootError, Root, kernels};
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, KernelRelease, Machine, Origin};
use nodewise_model::fake::outcome::{EmulationVariant, remark};
use nodewise_model::fake::{Fake, Form};
use nodewise_source::parse::kernel_config::{self, KernelConfig};
use nodewise_view::digest::emulation::Support;

use super::facts::of_config;

/// The smallest node that a kernel makes.
///
/// # Source
/// `FAKE_NODE_MIN_SIZE` in the kernel's `mm/numa_emulation.c`.
const LEAST: Bytes = Bytes::from_mib(32);
/// Every board that such an image is for has this much memory.
const SURE: Bytes = Bytes::from_gib(1);

/// The kernels of an image.
pub(super) struct Image {
    kernels: Vec<(String, Option<KernelConfig>)>,
}

impl Image {
    /// Looks for them.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub(super) fn from_root(root: &Root) -> Result<Self, BootError> {
        let kernel =
            |kernel: kernels::Kernel| (kernel.release, kernel.config.as_deref().map(kernel_config::parse));
        Ok(Self { kernels: kernels::installed(root)?.into_iter().map(kernel).collect() })
    }

    /// Whether its kernels emulate nodes; of several kernels that differ it is unknown which is started.
    pub(super) fn support(&self) -> Support {
        let told: Vec<(String, Option<Support>)> = self
            .kernels
            .iter()
            .map(|(release, config)| (printable(release).into_owned(), config.as_ref().map(of_config)))
            .collect();
        let first = told.first().and_then(|(_, support)| support.as_ref()?.is_there);
        let all_alike = told.iter().all(|(_, one)| one.as_ref().and_then(|one| one.is_there) == first);
        let words = told.iter().map(|(release, support)| match support {
            Some(support) => format!("{release} is {}", support.by),
            None => format!("the options of {release} are unknown: config-{release} is missing"),
        });
        let by = words.collect::<Vec<_>>().join("; ");
        Support {
            is_there: first.filter(|_| all_alike),
            by: if by.is_empty() { NO_KERNEL.to_owned() } else { by },
        }
    }

    /// Lists what its kernels will not make of such words, as far as that can be known without the machine.
    pub(super) fn remarks(&self, fake: &Fake) -> Vec<String> {
        if self.kernels.is_empty() {
            return vec![format!("whether this image's kernel emulates nodes is not known: {NO_KERNEL}")];
        }
        let of_kernels =
            self.kernels.iter().filter_map(|(release, config)| of_kernel(release, config.as_ref(), fake));
        of_kernels.chain(of_memory(fake)).collect()
    }
}

const NO_KERNEL: &str = "there is no config-RELEASE in its /boot, and no folder of modules";

/// Says what one kernel will not make.
fn of_kernel(release: &str, config: Option<&KernelConfig>, fake: &Fake) -> Option<String> {
    let shown = printable(release);
    let Some(config) = config else {
        return Some(format!(
            "whether the image's kernel {shown} emulates nodes is not known: there is no config-{shown}"
        ));
    };
    let support = of_config(config);
    if support.is_there == Some(false) {
        return Some(format!("the image's kernel {shown} emulates no nodes: it is {}", support.by));
    }
    let mut machine = Machine::new(Origin::Live);
    machine.kernel = KernelRelease::new(release);
    let kind = EmulationVariant::from_machine(&machine);
    if kind == EmulationVariant::RaspberryPi66 && !matches!(fake.form, Form::Count(_)) {
        return remark(fake, kind, None).map(|why| format!("the image's kernel {shown}: {why}"));
    }
    let most = config.value("NODES_SHIFT").and_then(|bits| 1_u32.checked_shl(bits.parse().ok()?))?;
    match fake.form {
        Form::Count(count) | Form::PerNode(count) if count > most => {
            Some(format!("the image's kernel {shown} can number {most} nodes, {count} are asked for"))
        }
        _ => None,
    }
}

/// Says how much memory this many nodes need at least, where that is more than any such machine has for sure.
fn of_memory(fake: &Fake) -> Option<String> {
    let Form::Count(count) = fake.form else { return None };
    let need = Bytes::new(LEAST.get() * u64::from(count));
    (need > SURE).then(|| {
        format!(
            "{count} nodes of {LEAST} each, the least, need {need}: a machine with less starts without emulation, and how much this image's has is not known"
        )
    })
}
