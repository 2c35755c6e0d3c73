"""One message of each kind."""

from rtbrain.messages import Token
from rtbrain.published import (
    Age,
    BandMeta,
    ContextMeta,
    LatencyMeta,
    LogMeta,
    MarkerEcho,
    Meta,
    SampleCounts,
    SourceMeta,
    StateMessage,
    StateStatistics,
    StatusMessage,
    TokenMessage,
)

TRAINING = StateStatistics(coverage=(0.6, 0.4), duration_s=(0.07, 0.05), transitions=((0.0, 1.0), (1.0, 0.0)))
META = Meta(
    rtbrain="0.1.0",
    bundle="demo",
    bundle_sha256="0" * 64,
    parity=False,
    classes=("rest", "arithmetic"),
    channels=("Fz", "Cz", "Pz"),
    bands=(BandMeta("broad", 1.0, 40.0, 2, ((1.0, -0.5, -0.5), (0.2, -1.0, 0.8)), TRAINING),),
    templates_sha256="1" * 64,
    token_rate_hz=250.0,
    output_hz=10.0,
    context_s=60.0,
    filter_s=0.012,
    wait_s=0.25,
    source=SourceMeta("EEG", "amplifier-1", "lab", 250.0, 1.0),
    started="2024-02-29T12:00:00.000+00:00",
)
TOKEN = TokenMessage.of(Token(2, 500, 25, 8.5, -0.1, 0.8, 1.0, 75.0, 48.0, 0), "broad", 250.0, 1)
STATE = StateMessage(
    time_s=1234.5,
    signal_s=2.1,
    label="rest",
    probabilities={"rest": 0.7, "arithmetic": 0.3},
    context=ContextMeta(1, 30, 2.0, "start"),
    trusted=False,
    reasons=("the context is shorter than 10 s",),
    age=Age(0.05, 0.01, 0.012, 0.03, 0.002, 0.0001),
    markers=(MarkerEcho(1234.0, "trial 1"),),
)
STATUS = StatusMessage(
    state="live",
    trouble="",
    silent_s=0.01,
    samples=SampleCounts(1000, 0, 2, 0, 0, 0),
    gaps=0,
    stalls=0,
    reconnects=0,
    clock_steps=0,
    bad_channels=("Pz",),
    queue=0,
    cpu_share=0.1,
    rss_mb=120.0,
    latency=LatencyMeta(100, 20.0, 25.0, 30.0, 40.0),
    refused_clients=0,
    log=LogMeta("writing", 100, 0, ""),
)
ALL = (META, TOKEN, STATE, STATUS)
