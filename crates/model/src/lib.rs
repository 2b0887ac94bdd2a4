//! What the kernel will do with memory: pure, from kernel sources' behaviour.
