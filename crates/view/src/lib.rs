//! Showing it: values in; text, JSON, SVG out. No printing, no clock.
