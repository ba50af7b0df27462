//! Which check a warning belongs to: exactly one.

use super::CheckKind;
use crate::warning::{
    AnswerWarning, ClientWarning, LoadWarning, MachineWarning, RunWarning, ServerWarning, Warning,
    WorkloadWarning,
};

impl Warning {
    /// The check that it makes fail.
    pub const fn check(&self) -> CheckKind {
        match self {
            Self::Run(warning) => of_run(warning),
            Self::Load(warning) => of_load(warning),
            Self::Client(warning) => of_client(warning),
            Self::Workload(warning) => of_workload(warning),
            Self::Answers(warning) => of_answers(warning),
            Self::Server(warning) => of_server(warning),
            Self::Machines(warning) => of_machines(warning),
        }
    }
}

const fn of_run(warning: &RunWarning) -> CheckKind {
    match warning {
        RunWarning::NothingOk { .. } | RunWarning::Errors { .. } | RunWarning::StalePool { .. } => {
            CheckKind::Errors
        }
        RunWarning::AllCut { .. } | RunWarning::Partial { .. } | RunWarning::CutAtLimit { .. } => {
            CheckKind::CompleteRun
        }
        RunWarning::HeldByCap { .. } | RunWarning::Backlog { .. } => CheckKind::DeliveredLoad,
        RunWarning::Insecure | RunWarning::ProxyVariables { .. } => CheckKind::Answerer,
        RunWarning::FewRequests { .. } => CheckKind::SampleSize,
    }
}

const fn of_load(warning: &LoadWarning) -> CheckKind {
    match warning {
        LoadWarning::RateMissed { .. }
        | LoadWarning::SlotsEmpty { .. }
        | LoadWarning::ArrivalsBunched { .. }
        | LoadWarning::ArrivalsUnlike { .. } => CheckKind::DeliveredLoad,
        LoadWarning::PilingUp { .. } | LoadWarning::NeverSettled { .. } => CheckKind::SteadyState,
        LoadWarning::LittlesLaw { .. } | LoadWarning::ServerInFlight { .. } => {
            CheckKind::LittlesLaw
        }
    }
}

const fn of_client(warning: &ClientWarning) -> CheckKind {
    match warning {
        ClientWarning::SentLate { .. } => CheckKind::SendLag,
        ClientWarning::ClientLag { .. } => CheckKind::ClientLag,
        ClientWarning::ArrivalWidth { .. } => CheckKind::ArrivalWidth,
        ClientWarning::LoopLag { .. }
        | ClientWarning::LoopPaused { .. }
        | ClientWarning::CpuStolen { .. } => CheckKind::ClientLoop,
        ClientWarning::CapacityUsed { .. }
        | ClientWarning::JournalWaits { .. }
        | ClientWarning::ClientResource { .. } => CheckKind::ClientCapacity,
        ClientWarning::ClockJump { .. } | ClientWarning::ClockOrder { .. } => CheckKind::Clock,
        ClientWarning::NoKernelStamps { .. } => CheckKind::KernelStamps,
    }
}

const fn of_workload(warning: &WorkloadWarning) -> CheckKind {
    match warning {
        WorkloadWarning::CacheContamination { .. }
        | WorkloadWarning::SeenBefore { .. }
        | WorkloadWarning::RepeatedPrompts { .. } => CheckKind::Cache,
        WorkloadWarning::ConversationsBroken { .. } => CheckKind::Errors,
    }
}

const fn of_answers(warning: &AnswerWarning) -> CheckKind {
    match warning {
        AnswerWarning::ModelMismatch { .. } => CheckKind::Answerer,
        AnswerWarning::NotStreaming { .. }
        | AnswerWarning::NoOutput { .. }
        | AnswerWarning::MissingDone { .. }
        | AnswerWarning::DataAfterDone { .. } => CheckKind::Stream,
        AnswerWarning::OutputLength { .. } => CheckKind::OutputLength,
        AnswerWarning::InputLength { .. } => CheckKind::InputLength,
        AnswerWarning::UsageZero { .. }
        | AnswerWarning::UsageMismatch { .. }
        | AnswerWarning::TokenSource { .. } => CheckKind::TokenCounts,
    }
}

const fn of_server(warning: &ServerWarning) -> CheckKind {
    match warning {
        ServerWarning::Restarted { .. } | ServerWarning::Replicas { .. } => {
            CheckKind::ServerRestart
        }
        ServerWarning::MoreTokens { .. } | ServerWarning::FewerTokens { .. } => {
            CheckKind::ServerAlone
        }
    }
}

const fn of_machines(warning: &MachineWarning) -> CheckKind {
    match warning {
        MachineWarning::GpuThrottled { .. }
        | MachineWarning::GpuHot { .. }
        | MachineWarning::GpuMemoryFull { .. }
        | MachineWarning::GpusIdle { .. } => CheckKind::GpuSpeed,
        MachineWarning::GpuNewcomers { .. } => CheckKind::GpuAlone,
        MachineWarning::ClientCpuFull { .. } | MachineWarning::ClientMemoryLow { .. } => {
            CheckKind::ClientMachine
        }
    }
}
