// Goprovider is a tool provider on the original plugin library. It exists to be a counterpart for hosts.
//
// What it does wrong is chosen by the name it is started under, because a host starts a plugin without arguments:
// as `goprovider-two-terminals` it ends a stream twice. Under any name without a known conduct it does all right.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/pluggable-harness/catalog/tests/interop/contract"
	"github.com/pluggable-harness/catalog/tests/interop/gen/toolv1"
)

// conduct is one way to break the contract.
type conduct string

const (
	good               conduct = "good"
	noTerminal         conduct = "no-terminal"
	twoTerminals       conduct = "two-terminals"
	chunkAfterTerminal conduct = "chunk-after-terminal"
	exitMidStream      conduct = "exit-mid-stream"
	longStdoutLine     conduct = "long-stdout-line"
	nullField          conduct = "null-field"
	missingField       conduct = "missing-field"
)

func conductOf(program string) conduct {
	name := conduct(strings.TrimPrefix(filepath.Base(program), "goprovider-"))
	switch name {
	case noTerminal, twoTerminals, chunkAfterTerminal, exitMidStream, longStdoutLine, nullField, missingField:
		return name
	}
	return good
}

type toolPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	conduct conduct
}

func (p toolPlugin) GRPCServer(broker *goplugin.GRPCBroker, server *grpc.Server) error {
	toolv1.RegisterToolServiceServer(server, &provider{conduct: p.conduct, kernel: dialKernel(broker)})
	return nil
}

func (toolPlugin) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

// serverThatLeaves is the library's server, except that the process ends with its last connection: the library
// itself stays when its host dies.
func serverThatLeaves(options []grpc.ServerOption) *grpc.Server {
	return goplugin.DefaultGRPCServer(append(options, grpc.StatsHandler(&connections{})))
}

type connections struct{ open atomic.Int64 }

func (*connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*connections) HandleRPC(context.Context, stats.RPCStats)                         {}
func (*connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (c *connections) HandleConn(_ context.Context, event stats.ConnStats) {
	switch event.(type) {
	case *stats.ConnBegin:
		c.open.Add(1)
	case *stats.ConnEnd:
		if c.open.Add(-1) == 0 {
			os.Exit(0)
		}
	}
}

func main() {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: contract.Handshake,
		Plugins:         goplugin.PluginSet{contract.ToolPlugin: toolPlugin{conduct: conductOf(os.Args[0])}},
		GRPCServer:      serverThatLeaves,
		Logger:          hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: os.Stderr, JSONFormat: true}),
	})
}
