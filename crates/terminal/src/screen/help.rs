//! The keys, and the words of the columns.

use ratatui::layout::Rect;

use super::{FRAME, Page};
use crate::ink::Ink;

const KEYS: &str = "\
Keys
  1 to 6      screens; Tab and the left and right arrows switch
  j k         down and up; also arrows, Page Up, Page Down, Home, End
  Enter       open: processes of a node or a service, a process, its mappings
  Esc         back; on the list of processes: clear the filter
  /           filter; \\ clears it
  s < >       sort by the next or the previous column; r reverses
  K           show or hide kernel threads
  p Space     pause and resume; play a recording
  + -         longer or shorter interval
  e           save this screen as text in a new file
  m           show the command that moves stranded memory (it is not run)
  [ ] { }     recordings: step by a sample, by a minute
  g G         recordings: go to a time, to the end
  Ctrl-L      redraw
  Ctrl-Z      suspend
  q           quit

Filters: all terms must match
  text        part of the name
  pid=4121    user=alice  unit=postgres
  node=2      memory on node 2, or CPU time there
  rss>1G      cpu>50

Columns
  CPU%        100 is one CPU
  stranded    memory on nodes where the process did not run
  N0 N1 ...   memory by node, in percent; ~ estimated from sampled pages
  local       memory on the nodes where the CPU time was spent; 1/nodes if
              interleaved on purpose; not a share of accesses
  runs on     nodes of its CPU time where certain; the rest is unsure
  moved/s     pages moved by automatic balancing
  miss/s      pages allocated here because another node had no room
  foreign/s   pages wanted here, allocated on other nodes
  other/s     pages allocated here for CPUs of other nodes
  recent free free memory in the last 15 readings: the higher, the more
  !           little free memory, much stranded memory, or most interrupts
              on other nodes
  *           the column that sorts the list
  -           unknown";

/// The first line where the last one is at the bottom of a terminal of this height.
pub(crate) fn last(height: u16) -> usize {
    KEYS.lines().count().saturating_sub(usize::from(height.saturating_sub(FRAME)))
}

/// Draws it from a line on.
pub(super) fn draw(page: &mut Page<'_>, first: usize, area: Rect) {
    for (at, line) in (0..area.height).zip(KEYS.lines().skip(first.min(last(area.height + FRAME)))) {
        let is_head = !line.starts_with(' ') && !line.is_empty();
        page.line(area, at, if is_head { Ink::Strong } else { Ink::Plain }, &format!(" {line}"));
    }
}
