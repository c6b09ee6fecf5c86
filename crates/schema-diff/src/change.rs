//! One change, and the rule it follows.

use std::fmt;

use serde::{Serialize, Serializer};

/// What a change does to those who use the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Something that was right before can be wrong now.
    Breaking,
    /// Whatever was right before still is.
    Compatible,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Breaking => "breaking",
            Self::Compatible => "compatible",
        })
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $effect:ident;)*) => {
        /// The rules. Their names are stable, so that scripts can except one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule { $($(#[$doc])* $name,)* }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The rule's name in JSON and in brackets behind a sentence.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What a change under this rule does.
            pub fn effect(self) -> Effect {
                match self { $(Self::$name => Effect::$effect,)* }
            }
        }
    };
}

rules! {
    /// The provider's own name changed: the kernel knows it by that name.
    ProviderRenamed = "provider_renamed", Breaking;
    /// The source changed: `required_providers` and lock files name it.
    SourceChanged = "source_changed", Breaking;
    /// The protocol of the category changed its version.
    ProtocolChanged = "protocol_changed", Breaking;
    /// A tool is gone.
    ToolRemoved = "tool_removed", Breaking;
    /// A tool is new.
    ToolAdded = "tool_added", Compatible;
    /// A tool reads where it changed, or the other way round: approval rests on the kind.
    KindChanged = "kind_changed", Breaking;
    /// Calls can do more harm: policies that let them through may not do so any more.
    RiskRaised = "risk_raised", Breaking;
    /// Calls can do less harm.
    RiskLowered = "risk_lowered", Compatible;
    /// Events may come before the outcome where there was only one event.
    StreamingStarted = "streaming_started", Breaking;
    /// Only the outcome comes.
    StreamingStopped = "streaming_stopped", Compatible;
    /// Other calls than before run at the same time.
    ConcurrencyChanged = "concurrency_changed", Compatible;
    /// A call that took long is ended earlier.
    TimeoutShortened = "timeout_shortened", Breaking;
    /// A call may take longer.
    TimeoutExtended = "timeout_extended", Compatible;
    /// Repeating a call is no longer the same as making it once.
    IdempotenceLost = "idempotence_lost", Breaking;
    /// Repeating a call is the same as making it once.
    IdempotenceGained = "idempotence_gained", Compatible;
    /// A successful call ends the turn, or no longer does.
    TurnEndChanged = "turn_end_changed", Breaking;
    /// A text that models and people read is another.
    DescriptionChanged = "description_changed", Compatible;

    /// An argument is gone.
    ArgumentRemoved = "argument_removed", Breaking;
    /// An argument is new and can be left out.
    ArgumentAdded = "argument_added", Compatible;
    /// An argument is new and must be given.
    RequiredArgumentAdded = "required_argument_added", Breaking;
    /// An argument must be given that could be left out.
    ArgumentMadeRequired = "argument_made_required", Breaking;
    /// An argument can be left out that had to be given.
    ArgumentMadeOptional = "argument_made_optional", Compatible;
    /// An argument accepts values of another type.
    ArgumentTypeChanged = "argument_type_changed", Breaking;
    /// An argument accepts all it did and more.
    ArgumentWidened = "argument_widened", Compatible;
    /// An argument accepts less than it did.
    ArgumentNarrowed = "argument_narrowed", Breaking;
    /// An argument no longer accepts a value of its set.
    ArgumentValueRemoved = "argument_value_removed", Breaking;
    /// An argument accepts one more value.
    ArgumentValueAdded = "argument_value_added", Compatible;

    /// A field of the result is gone.
    ResultFieldRemoved = "result_field_removed", Breaking;
    /// A field of the result is new.
    ResultFieldAdded = "result_field_added", Compatible;
    /// A field of the result can be missing that was always there.
    ResultFieldMadeOptional = "result_field_made_optional", Breaking;
    /// A field of the result is always there that could be missing.
    ResultFieldMadeRequired = "result_field_made_required", Compatible;
    /// A field of the result has another type.
    ResultTypeChanged = "result_type_changed", Breaking;
    /// A field of the result can be more than it could.
    ResultWidened = "result_widened", Breaking;
    /// A field of the result is less than it could be.
    ResultNarrowed = "result_narrowed", Compatible;
    /// A field of the result can have a value that readers do not know.
    ResultValueAdded = "result_value_added", Breaking;
    /// A field of the result no longer has one of its values.
    ResultValueRemoved = "result_value_removed", Compatible;

    /// A configuration attribute is gone: the kernel refuses a block that has it.
    AttributeRemoved = "attribute_removed", Breaking;
    /// A configuration attribute is new and can be left out.
    AttributeAdded = "attribute_added", Compatible;
    /// A configuration attribute is new and must be given.
    RequiredAttributeAdded = "required_attribute_added", Breaking;
    /// A configuration attribute must be given that could be left out.
    AttributeMadeRequired = "attribute_made_required", Breaking;
    /// A configuration attribute can be left out that had to be given.
    AttributeMadeOptional = "attribute_made_optional", Compatible;
    /// A configuration attribute has another type.
    AttributeTypeChanged = "attribute_type_changed", Breaking;
    /// An absent configuration attribute means something else.
    DefaultChanged = "default_changed", Breaking;
    /// A configuration attribute became a secret: it must be written as `env("NAME")`.
    MadeSensitive = "made_sensitive", Breaking;
    /// A configuration attribute is no longer a secret.
    MadePlain = "made_plain", Compatible;

    /// A hook point is gone: agents that subscribe the provider to it do not start.
    HookRemoved = "hook_removed", Breaking;
    /// A hook point is new.
    HookAdded = "hook_added", Compatible;
    /// A slash command is gone.
    CommandRemoved = "command_removed", Breaking;
    /// A slash command is new.
    CommandAdded = "command_added", Compatible;
    /// A slash command expands to another text.
    CommandChanged = "command_changed", Compatible;
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The rule it follows.
    pub rule: Rule,
    /// What changed: the name of a tool, or `provider`, `configuration`, `hooks`, `commands`.
    pub subject: String,
    /// The place inside, for example `arguments.path` or `result.files[].path`; empty for the whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// What happened, as the rest of a sentence.
    pub message: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.message)
    }
}
