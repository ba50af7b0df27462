//! A model on its GPUs, as the numbers that step times follow from.

/// What one deployment has to do and what it can do it with. Rates are peaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// FLOP/s of one GPU in the type in which the linear layers multiply.
    pub linear_flops: f64,
    /// FLOP/s of one GPU in the type in which attention multiplies.
    pub attention_flops: f64,
    /// Bytes/s of one GPU's memory.
    pub memory_bandwidth: f64,
    /// Bytes/s and direction that a GPU can send to the others of its tensor-parallel group.
    pub link_bandwidth: f64,
    pub link_latency_s: f64,
    pub tensor_parallel: u32,
    pub pipeline_parallel: u32,
    pub layers: u32,
    pub hidden_size: u32,
    /// Bytes of one number that GPUs send each other.
    pub activation_bytes: f64,
    /// Parameters of the layers that each token is multiplied with.
    pub active_parameters: f64,
    /// Parameters of the output layer: only positions that yield a token pass through it.
    pub head_parameters: f64,
    /// Bytes of the weights that every step reads.
    pub dense_bytes: f64,
    /// Bytes of all routed experts.
    pub routed_bytes: f64,
    pub experts: u32,
    pub experts_per_token: u32,
    /// Bytes of one token's keys and values on one GPU, over all layers.
    pub kv_bytes_per_token: f64,
    /// FLOPs of attention between two tokens of a prompt, over all layers and heads.
    pub prefill_flops_per_pair: f64,
    /// The same for a decode and one token of its context.
    pub decode_flops_per_pair: f64,
    /// Largest decode batch that has been captured; zero for none.
    pub graphs_max: u32,
    pub async_scheduling: bool,
    /// Decode steps per scheduling decision, over which the host's time is spread.
    pub scheduler_steps: u32,
}

impl Machine {
    /// Bytes of weights that a step of `tokens` tokens reads: all dense ones, and of the experts
    /// those that at least one token is expected to choose.
    pub fn weight_bytes(&self, tokens: f64) -> f64 {
        if self.experts == 0 {
            return self.dense_bytes;
        }
        let passed_over = 1.0 - f64::from(self.experts_per_token) / f64::from(self.experts);
        self.dense_bytes + self.routed_bytes * (1.0 - libm::pow(passed_over, tokens))
    }

    /// Seconds of the all-reduces behind a step: two per layer, each over all its tokens.
    pub(crate) fn communication_s(&self, tokens: f64, latency_s: f64, share: f64) -> f64 {
        if self.tensor_parallel < 2 {
            return 0.0;
        }
        let group = f64::from(self.tensor_parallel);
        let bytes = tokens * f64::from(self.hidden_size) * self.activation_bytes;
        let moving = 2.0 * (group - 1.0) / group * bytes / (self.link_bandwidth * share);
        2.0 * f64::from(self.layers) * (latency_s + moving)
    }

    /// Seconds in which a step's numbers pass from stage to stage.
    pub(crate) fn handover_s(&self, tokens: f64, latency_s: f64, share: f64) -> f64 {
        let bytes = tokens * f64::from(self.hidden_size) * self.activation_bytes;
        let stages = f64::from(self.pipeline_parallel.max(1));
        (stages - 1.0) * (latency_s + bytes / (self.link_bandwidth * share))
    }
}
