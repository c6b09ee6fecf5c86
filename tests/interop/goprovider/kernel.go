package main

import (
	"context"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/pluggable-harness/catalog/tests/interop/contract"
	"github.com/pluggable-harness/catalog/tests/interop/gen/kernelv1"
	"github.com/pluggable-harness/catalog/tests/interop/gen/logv1"
)

// patience is how long an entry may take: a host need not answer either.
const patience = 2 * time.Second

// kernel is the callback connection, which may never come: a host need not serve it.
type kernel struct {
	ready  chan struct{}
	client kernelv1.KernelCallbackServiceClient
}

// dialKernel dials in the background: the library forgets the address after five seconds, and waiting for it here
// would deadlock with a host that waits for the plugin.
func dialKernel(broker *goplugin.GRPCBroker) *kernel {
	k := &kernel{ready: make(chan struct{})}
	go func() {
		defer close(k.ready)
		if connection, err := broker.Dial(contract.CallbackID); err == nil {
			k.client = kernelv1.NewKernelCallbackServiceClient(connection)
		}
	}()
	return k
}

// log hands one entry to the kernel. A lost entry is no reason to fail a call.
func (k *kernel) log(ctx context.Context, session, message string, fields map[string]any) {
	select {
	case <-k.ready:
	case <-time.After(patience):
		return
	case <-ctx.Done():
		return
	}
	if k.client == nil {
		return
	}
	facts, err := structpb.NewStruct(fields)
	if err != nil {
		return
	}
	request := &kernelv1.LogRequest{Entries: []*logv1.LogEntry{{
		Level:   logv1.LogLevel_LOG_LEVEL_INFO,
		Logger:  "goprovider",
		Message: message,
		Fields:  facts,
		Time:    timestamppb.Now(),
	}}}
	if session != "" {
		request.SessionId = &session
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	_, _ = k.client.Log(ctx, request)
}
