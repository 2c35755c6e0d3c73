"""The offline side: data sets, splits that cannot leak, audits, simulated sets and token corpora."""
