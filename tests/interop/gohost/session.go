package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pluggable-harness/catalog/tests/interop/gen/commonv1"
	"github.com/pluggable-harness/catalog/tests/interop/gen/controlv1"
	"github.com/pluggable-harness/catalog/tests/interop/gen/toolv1"
)

const (
	// The kernel's limit of a preview.
	previewLimit = 5 * time.Second
	// The kernel's limit of a call that declares none.
	callLimit = 30 * time.Second
	// The library's own cannot be waited for; a provider that needs longer is broken.
	bringUpLimit = 10 * time.Second
)

// session is one conversation with one provider.
type session struct {
	connection *grpc.ClientConn
	kernel     *kernel
	report     *report
	schemas    map[string]*toolv1.ToolSchema
}

func (s *session) tools() toolv1.ToolServiceClient {
	return toolv1.NewToolServiceClient(s.connection)
}

// bringUp is what a kernel does before the first turn.
func (s *session) bringUp(config map[string]any) error {
	ctx, stop := context.WithTimeout(context.Background(), bringUpLimit)
	defer stop()
	s.probeForeignCategory(ctx)
	if err := s.describe(ctx); err != nil {
		return err
	}
	if err := s.getSchema(ctx); err != nil {
		return err
	}
	values, err := structpb.NewStruct(config)
	if err != nil {
		return fmt.Errorf("config of the script: %w", err)
	}
	s.kernel.mutex.Lock()
	s.kernel.config = values
	s.kernel.mutex.Unlock()
	if _, err := s.tools().Configure(ctx, &toolv1.ConfigureRequest{Config: values}); err != nil {
		return fmt.Errorf("Configure: %w", err)
	}
	for _, name := range s.report.Tools {
		s.probePreview(name)
	}
	return nil
}

// probeForeignCategory asks for a service no tool provider has, as a kernel does that has to find out the category.
func (s *session) probeForeignCategory(ctx context.Context) {
	method := "/pluggableharness.model.v1.ModelService/Describe"
	err := s.connection.Invoke(ctx, method, &toolv1.DescribeRequest{}, &toolv1.DescribeResponse{})
	if status.Code(err) != codes.Unimplemented {
		s.report.fail("foreign service: want UNIMPLEMENTED, got %v", err)
	}
}

func (s *session) describe(ctx context.Context) error {
	first, err := s.tools().Describe(ctx, &toolv1.DescribeRequest{})
	if err != nil {
		return fmt.Errorf("Describe: %w", err)
	}
	producer := first.GetProducer()
	s.report.Producer = producerSeen{
		Name:            producer.GetName(),
		Version:         producer.GetVersion(),
		Source:          producer.GetSource(),
		ProtocolVersion: producer.GetProtocolVersion(),
	}
	if producer.GetCategory() != commonv1.Category_CATEGORY_TOOL {
		s.report.fail("Describe: category is %s", producer.GetCategory())
	}
	if producer.GetName() == "" || producer.GetVersion() == "" || producer.GetSource() == "" {
		s.report.fail("Describe: name, version and source have to be set: %v", producer)
	}
	if producer.GetProtocolVersion() != 1 {
		s.report.fail("Describe: protocol version is %d", producer.GetProtocolVersion())
	}
	second, err := s.tools().Describe(ctx, &toolv1.DescribeRequest{})
	if err != nil || !proto.Equal(first, second) {
		s.report.fail("Describe: the second answer differs: %v, %v", second, err)
	}
	return nil
}

func (s *session) getSchema(ctx context.Context) error {
	first, err := s.tools().GetSchema(ctx, &toolv1.GetSchemaRequest{})
	if err != nil {
		return fmt.Errorf("GetSchema: %w", err)
	}
	second, err := s.tools().GetSchema(ctx, &toolv1.GetSchemaRequest{})
	if err != nil || !proto.Equal(first, second) {
		s.report.fail("GetSchema: the second answer differs: %v", err)
	}
	s.schemas = map[string]*toolv1.ToolSchema{}
	for _, tool := range first.GetTools() {
		if s.schemas[tool.GetName()] != nil {
			s.report.fail("GetSchema: there are two tools %q", tool.GetName())
		}
		s.schemas[tool.GetName()] = tool
		s.report.Tools = append(s.report.Tools, tool.GetName())
		for _, broken := range brokenRules(tool) {
			s.report.fail("GetSchema: %s: %s", tool.GetName(), broken)
		}
	}
	if len(s.schemas) == 0 {
		s.report.fail("GetSchema: there are no tools")
	}
	return nil
}

// probePreview finds out whether a tool has previews, the kernel's way: any answer but these three means yes.
func (s *session) probePreview(name string) {
	_, err := s.preview(&toolv1.ToolCall{Id: "preview probe", ToolName: name, Arguments: &structpb.Struct{}})
	switch status.Code(err) {
	case codes.Unimplemented:
	case codes.Canceled, codes.DeadlineExceeded:
		s.report.fail("Preview: the probe of %s got no answer: %v", name, err)
	default:
		s.report.PreviewOffered = append(s.report.PreviewOffered, name)
	}
}

func (s *session) preview(call *toolv1.ToolCall) (*toolv1.PreviewResponse, error) {
	ctx, stop := context.WithTimeout(context.Background(), previewLimit)
	defer stop()
	return s.tools().Preview(ctx, &toolv1.PreviewRequest{Call: call})
}

// call makes one call of the script and judges everything about it.
func (s *session) call(wanted *scriptCall, index int) {
	seen := callSeen{Tool: wanted.Tool, Events: []string{}}
	where := fmt.Sprintf("call %d of %s", index, wanted.Tool)
	arguments, err := structpb.NewStruct(wanted.Arguments)
	if err != nil {
		s.report.fail("%s: arguments of the script: %v", where, err)
		return
	}
	call := &toolv1.ToolCall{Id: fmt.Sprintf("call-%d", index), ToolName: wanted.Tool, Arguments: arguments}
	if wanted.Preview {
		response, err := s.preview(call)
		if err != nil {
			s.report.fail("%s: Preview: %v", where, err)
		}
		seen.Preview = protojson.Format(response.GetPreview())
	}
	call.CallContext = &commonv1.CallContext{
		SessionId:        wanted.Session,
		TurnId:           "turn-1",
		WorkingDirectory: wanted.Directory,
	}
	stream := s.invoke(call, wanted.Cancel, &seen)
	for _, broken := range stream.brokenRules(wanted, s.schemas[wanted.Tool]) {
		s.report.fail("%s: %s", where, broken)
	}
	if wanted.Render && stream.result != nil {
		s.render(stream.result, where, &seen)
	}
	s.report.Calls = append(s.report.Calls, seen)
}

func (s *session) render(result *toolv1.ToolResult, where string, seen *callSeen) {
	payload, err := protojson.Marshal(result.GetPayload())
	if err != nil {
		s.report.fail("%s: Render: %v", where, err)
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), previewLimit)
	defer stop()
	response, err := s.tools().Render(ctx, &toolv1.RenderRequest{Payload: payload, SchemaVersion: "1"})
	if err != nil {
		s.report.fail("%s: Render: %v", where, err)
		return
	}
	if response.GetTree().GetRoot().GetNode() == nil {
		s.report.fail("%s: Render: the tree is empty", where)
	}
	seen.Render = protojson.Format(response.GetTree())
}

// invoke reads the stream to its end, past the terminal event, where nothing may follow.
func (s *session) invoke(call *toolv1.ToolCall, cancel *scriptCancel, seen *callSeen) *streamSeen {
	limit := callLimit
	if declared := s.schemas[call.GetToolName()].GetDefaultTimeout(); declared != nil {
		limit = declared.AsDuration()
	}
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	observed := &streamSeen{}
	began := time.Now()
	firstEvent, ended, cancelled := make(chan struct{}), make(chan struct{}), make(chan time.Time, 1)
	go func() {
		defer close(cancelled)
		s.cancel(cancel, call.GetId(), firstEvent, ended, stop, cancelled)
	}()
	stream, err := s.tools().Invoke(ctx, &toolv1.InvokeRequest{Call: call})
	for err == nil {
		var response *toolv1.InvokeResponse
		if response, err = stream.Recv(); err != nil {
			break
		}
		observed.take(response.GetEvent(), seen)
		if len(seen.Events) == 1 {
			close(firstEvent)
		}
	}
	close(ended)
	finished := time.Now()
	if moment, happened := <-cancelled; happened {
		began = moment
	}
	seen.Milliseconds = finished.Sub(began).Milliseconds()
	if !errors.Is(err, io.EOF) {
		observed.broken = err
	}
	seen.Status = status.Code(observed.broken).String()
	return observed
}

// cancel waits for its moment and cancels the call, unless the call ends before.
func (s *session) cancel(cancel *scriptCancel, id string, firstEvent, ended <-chan struct{}, reset func(), cancelled chan<- time.Time) {
	if cancel == nil {
		return
	}
	var moment <-chan time.Time
	if !cancel.AfterFirstEvent {
		firstEvent = nil
		moment = time.After(time.Duration(cancel.AfterMs) * time.Millisecond)
	}
	select {
	case <-firstEvent:
	case <-moment:
	case <-ended:
		return
	}
	cancelled <- time.Now()
	if cancel.By == "reset" {
		reset()
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), previewLimit)
	defer stop()
	answer, err := controlv1.NewCallControlClient(s.connection).Cancel(ctx, &controlv1.CancelRequest{CallId: id})
	if err != nil || !answer.GetFound() {
		s.report.fail("Cancel of %s: found is %v, %v", id, answer.GetFound(), err)
	}
}

// awaitLog waits until an entry has come for every session: a provider hands them over in batches.
func (s *session) awaitLog(sessions []string) {
	for _, wanted := range sessions {
		deadline := time.Now().Add(5 * time.Second)
		for !s.kernel.loggedFor(wanted) {
			if time.Now().After(deadline) {
				s.report.fail("Log: no entry came for session %q", wanted)
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
