//! The keys, and the words of the columns.

use ratatui::layout::Rect;

use super::Page;
use crate::ink::Ink;

const KEYS: &str = "\
Keys
  1 2 3 4 5   screens; Tab and the arrows go to the next and back
  j k         down and up; also arrows, Page Up, Page Down, Home, End
  Enter       open: processes of a node, a process, its mappings
  Esc         back; on the list of processes: clear the filter
  /           filter; \\ clears it
  s < >       sort by the next or the previous column; r reverses
  K           kernel threads: show or hide
  p Space     pause; for recordings: play and stop
  + -         time between readings
  e           save this screen as text in a file, which must not exist
  m           the command that moves stranded memory; it is not run
  [ ] { }     recordings: a sample, a minute back and on
  g G         recordings: go to a time, to the end
  Ctrl-L      draw again
  Ctrl-Z      suspend
  q           quit

Filters: several must all match
  text        a part of the name
  pid=4121    user=1000   unit=postgres
  node=2      has memory on node 2, or ran there
  rss>1G      cpu>50

Columns
  CPU%        100 is one CPU
  stranded    memory on nodes where the process did not run
  N0 N1 ...   share of its memory on each node, in percent; ~ from sampled pages
  local       memory on the nodes where its CPU time was spent; a process
              interleaved on purpose has 1/nodes; not a share of accesses
  runs on     nodes of its CPU time, as far as certain; the rest is unsure
  moved/s     pages that automatic balancing moved
  miss/s      pages that other nodes had no room for
  foreign/s   pages wanted here that came from other nodes
  other/s     pages given to CPUs of other nodes
  !           low memory, or much stranded memory
  *           the column that decides the order
  -           not known";

/// The lines of the help.
pub(crate) fn lines() -> Vec<&'static str> {
    KEYS.lines().collect()
}

/// Draws it from a line on.
pub(super) fn draw(page: &mut Page<'_>, first: usize, area: Rect) {
    let lines = lines();
    let most = lines.len().saturating_sub(usize::from(area.height));
    for (at, line) in (0..area.height).zip(&lines[first.min(most)..]) {
        let is_head = !line.starts_with(' ') && !line.is_empty();
        page.line(area, at, if is_head { Ink::Strong } else { Ink::Plain }, &format!(" {line}"));
    }
}
