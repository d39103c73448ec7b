"""One cached object: decoding, storage tiers (`storage`), declared fields, and the views that readers get."""
