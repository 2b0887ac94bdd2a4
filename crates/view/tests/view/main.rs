//! The views of whole machines and studies: goldens that a person read, and rules that hold for any machine.

mod advice;
mod any_machine;
mod bandwidth;
mod compare;
mod diff;
mod doctor;
mod documents;
mod export;
mod figures;
mod golden;
mod io;
mod latency;
mod line_counts;
mod loaded;
mod picture;
mod placements;
mod queues;
mod rules;
mod rules_page;
mod running;
mod saved;
mod server;
mod study;
mod sweep;
mod text;
