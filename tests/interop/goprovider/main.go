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

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

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

func main() {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: contract.Handshake,
		Plugins:         goplugin.PluginSet{contract.ToolPlugin: toolPlugin{conduct: conductOf(os.Args[0])}},
		GRPCServer:      goplugin.DefaultGRPCServer,
		Logger:          hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: os.Stderr, JSONFormat: true}),
	})
}
