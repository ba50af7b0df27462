//! Every key of the schema, by flag and by `--set`; every example.
