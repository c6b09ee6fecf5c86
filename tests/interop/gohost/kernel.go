package main

import (
	"context"
	"math"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pluggable-harness/catalog/tests/interop/gen/contentv1"
	"github.com/pluggable-harness/catalog/tests/interop/gen/kernelv1"
	"github.com/pluggable-harness/catalog/tests/interop/gen/logv1"
	"github.com/pluggable-harness/catalog/tests/interop/gen/sessionv1"
)

// kernel serves the callbacks a tool provider may make; everything else is UNIMPLEMENTED, as in a kernel without a
// session host.
type kernel struct {
	kernelv1.UnimplementedKernelCallbackServiceServer

	mutex     sync.Mutex
	config    *structpb.Struct
	sessions  []string
	nested    *scriptNested
	ran       []nestedSeen
	callbacks map[string]int
	entries   []entrySeen
	failures  []string
}

func newKernel(sessions []string, nested *scriptNested) *kernel {
	return &kernel{sessions: sessions, nested: nested, callbacks: map[string]int{}, config: &structpb.Struct{}}
}

// count is an interceptor that keeps the number of calls by method.
func (k *kernel) count(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	k.mutex.Lock()
	k.callbacks[info.FullMethod]++
	k.mutex.Unlock()
	return handler(ctx, request)
}

func (k *kernel) server(options []grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(append(options, grpc.ChainUnaryInterceptor(k.count))...)
	kernelv1.RegisterKernelCallbackServiceServer(server, k)
	return server
}

// Log takes entries, and refuses sessions the provider has no grant for.
func (k *kernel) Log(_ context.Context, request *kernelv1.LogRequest) (*kernelv1.LogResult, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if request.SessionId != nil && !slices.Contains(k.sessions, request.GetSessionId()) {
		k.failures = append(k.failures, "Log named the unknown session "+request.GetSessionId())
		return nil, status.Error(codes.PermissionDenied, "no grant for this session")
	}
	if len(request.GetEntries()) == 0 {
		k.failures = append(k.failures, "Log came without entries")
		return nil, status.Error(codes.InvalidArgument, "no entries")
	}
	for _, entry := range request.GetEntries() {
		if entry.GetLevel() == logv1.LogLevel_LOG_LEVEL_UNSPECIFIED || entry.GetMessage() == "" || entry.GetTime() == nil {
			k.failures = append(k.failures, "a log entry lacks its level, message or time: "+entry.String())
			continue
		}
		k.entries = append(k.entries, entrySeen{
			Session: request.GetSessionId(),
			Level:   entry.GetLevel().String(),
			Logger:  entry.GetLogger(),
			Message: entry.GetMessage(),
			Fields:  entry.GetFields().AsMap(),
		})
	}
	return &kernelv1.LogResult{}, nil
}

// GetTelemetryConfig turns every signal on.
func (k *kernel) GetTelemetryConfig(
	context.Context, *kernelv1.GetTelemetryConfigRequest,
) (*kernelv1.GetTelemetryConfigResult, error) {
	return &kernelv1.GetTelemetryConfigResult{
		TracesEnabled:  true,
		MetricsEnabled: true,
		LogsEnabled:    true,
		LogLevel:       logv1.LogLevel_LOG_LEVEL_TRACE,
		SamplingRatio:  1,
	}, nil
}

// GetConfig repeats what Configure was given.
func (k *kernel) GetConfig(context.Context, *kernelv1.GetConfigRequest) (*kernelv1.GetConfigResult, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return &kernelv1.GetConfigResult{Config: k.config}, nil
}

// GetSession answers as a kernel does that does not know how deep it may go.
func (k *kernel) GetSession(context.Context, *kernelv1.GetSessionRequest) (*kernelv1.GetSessionResult, error) {
	if k.nested == nil {
		return nil, status.Error(codes.Unimplemented, "no session host")
	}
	return &kernelv1.GetSessionResult{
		Info:                   &sessionv1.SessionInfo{Depth: int32(k.nested.Depth)},
		RemainingDepth:         math.MaxInt32,
		RemainingCostBudgetUsd: 1.5,
	}, nil
}

// RunSession ends the way the script says, where it says one.
func (k *kernel) RunSession(
	_ context.Context, request *kernelv1.RunSessionRequest,
) (*kernelv1.RunSessionResult, error) {
	if k.nested == nil {
		return nil, status.Error(codes.Unimplemented, "no nested sessions")
	}
	k.mutex.Lock()
	k.ran = append(k.ran, nestedSeen{
		Profile:        request.GetProfile(),
		Prompt:         request.GetPrompt(),
		Parent:         request.GetParentSessionId(),
		RemainingDepth: request.GetRemainingDepth(),
		RemainingCost:  request.GetRemainingCostBudgetUsd(),
	})
	k.mutex.Unlock()
	text := &contentv1.ContentBlock{Block: &contentv1.ContentBlock_Text{
		Text: &contentv1.TextBlock{Text: k.nested.Text},
	}}
	return &kernelv1.RunSessionResult{
		SessionId:    "child",
		FinalMessage: &contentv1.Message{Content: []*contentv1.ContentBlock{text}},
		Status:       sessionv1.SessionStatus(sessionv1.SessionStatus_value["SESSION_STATUS_"+k.nested.Status]),
	}, nil
}

// ExportSpans takes spans.
func (k *kernel) ExportSpans(context.Context, *kernelv1.ExportSpansRequest) (*kernelv1.ExportSpansResult, error) {
	return &kernelv1.ExportSpansResult{}, nil
}

// RecordMetrics takes observations.
func (k *kernel) RecordMetrics(
	context.Context, *kernelv1.RecordMetricsRequest,
) (*kernelv1.RecordMetricsResult, error) {
	return &kernelv1.RecordMetricsResult{}, nil
}

// Publish takes events.
func (k *kernel) Publish(_ context.Context, request *kernelv1.PublishRequest) (*kernelv1.PublishResult, error) {
	return &kernelv1.PublishResult{Topic: "plugin.tool.provider." + request.GetEventType()}, nil
}

// loggedFor says whether an entry has come for the session.
func (k *kernel) loggedFor(session string) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return slices.ContainsFunc(k.entries, func(entry entrySeen) bool { return entry.Session == session })
}

// tell puts what was seen into the report.
func (k *kernel) tell(report *report) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for method, times := range k.callbacks {
		report.Callbacks[method] = times
	}
	report.Log = append(report.Log, k.entries...)
	report.Nested = append(report.Nested, k.ran...)
	report.Failures = append(report.Failures, k.failures...)
}
