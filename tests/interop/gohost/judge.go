package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/pluggable-harness/catalog/tests/interop/contract"
)

// The library gives a plugin two seconds to leave by itself; anything slower was killed.
const exitLimit = 2 * time.Second

// judge does everything to one provider. A returned error is a failure that made going on pointless.
func judge(program string, mtls bool, plan *script, report *report) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	// Everything either side leaves in its temporary directory is found in here. The path is short, because the
	// path of a socket has to be.
	scratch, err := os.MkdirTemp("", "gohost")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := os.Setenv("TMPDIR", scratch); err != nil {
		return err
	}
	judgeCookie(program, report)

	kernel := newKernel(sessionsOf(plan), plan.Nested)
	command := exec.Command(program)
	command.Env = environment()
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  contract.Handshake,
		Plugins:          goplugin.PluginSet{contract.ToolPlugin: hostPlugin{kernel: kernel}},
		Cmd:              command,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		AutoMTLS:         mtls,
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr, Name: "gohost"}),
	})
	stopped := converse(client, kernel, plan, report)
	judgeExit(client, command, report)
	kernel.tell(report)
	judgeSockets(scratch, report)
	return stopped
}

// converse is everything between launch and end.
func converse(client *goplugin.Client, kernel *kernel, plan *script, report *report) error {
	protocol, err := client.Client()
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	dispensed, err := protocol.Dispense(contract.ToolPlugin)
	if err != nil {
		return fmt.Errorf("dispense: %w", err)
	}
	connection, ok := dispensed.(*grpc.ClientConn)
	if !ok {
		return errors.New("dispense: no connection")
	}
	session := &session{connection: connection, kernel: kernel, report: report}
	if err := session.bringUp(plan.Config); err != nil {
		return err
	}
	for index := range plan.Calls {
		session.call(&plan.Calls[index], index)
	}
	session.awaitLog(plan.WantLogSessions)
	if err := protocol.Ping(); err != nil {
		report.fail("ping: %v", err)
	}
	return nil
}

func sessionsOf(plan *script) []string {
	var sessions []string
	for _, call := range plan.Calls {
		sessions = append(sessions, call.Session)
	}
	return sessions
}

// environment is what the kernel means a plugin to see; the library adds the host's own, as it does in the kernel.
func environment() []string {
	var variables []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			variables = append(variables, name+"="+value)
		}
	}
	prefix := "pluggableharness.producer."
	identity := []string{
		prefix + "category=tool",
		prefix + "name=" + url.QueryEscape("under test"),
		prefix + "version=" + url.QueryEscape("0.0.0"),
	}
	return append(variables, "OTEL_RESOURCE_ATTRIBUTES="+strings.Join(identity, ","))
}

// hostPlugin is the kernel's side of the tool category.
type hostPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	kernel *kernel
}

// GRPCServer is the other side's.
func (hostPlugin) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("a host serves no tools")
}

// GRPCClient begins to serve the callbacks and gives out the bare connection.
func (p hostPlugin) GRPCClient(
	_ context.Context, broker *goplugin.GRPCBroker, connection *grpc.ClientConn,
) (any, error) {
	go broker.AcceptAndServe(contract.CallbackID, p.kernel.server)
	return connection, nil
}

// judgeCookie starts the program the way a curious human does. It has to refuse, without a word on standard output.
func judgeCookie(program string, report *report) {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	command := exec.CommandContext(ctx, program)
	command.Env = environment()
	var said, complained strings.Builder
	command.Stdout, command.Stderr = &said, &complained
	var ended *exec.ExitError
	if err := command.Run(); !errors.As(err, &ended) || ended.ExitCode() != 1 {
		report.fail("without the cookie: want exit code 1, got %v", err)
	}
	if said.Len() > 0 {
		report.fail("without the cookie: standard output has %q", said.String())
	}
	if complained.Len() == 0 {
		report.fail("without the cookie: nothing explains it on standard error")
	}
}

// judgeExit ends the provider the library's way and looks at how it went.
func judgeExit(client *goplugin.Client, command *exec.Cmd, report *report) {
	began := time.Now()
	client.Kill()
	took := time.Since(began)
	if command.Process == nil {
		return
	}
	if state := command.ProcessState; state == nil {
		report.fail("exit: process %d is still there", command.Process.Pid)
	} else {
		report.Exit = exitSeen{Code: state.ExitCode(), Milliseconds: took.Milliseconds()}
		if wait, ok := state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
			report.Exit.Signal = wait.Signal().String()
		}
		if report.Exit.Code != 0 {
			report.fail("exit: want code 0, got %s", state)
		}
	}
	if took > exitLimit {
		report.fail("exit: took %v", took)
	}
}

// judgeSockets looks for sockets that outlived both sides. The library closes the host's own in the background.
func judgeSockets(scratch string, report *report) {
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		found := sockets(scratch)
		if len(found) == 0 {
			return
		}
		if time.Now().After(deadline) {
			report.LeftOverSockets = found
			report.fail("sockets left over: %s", strings.Join(found, ", "))
			return
		}
	}
}

func sockets(directory string) []string {
	var found []string
	_ = filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeSocket != 0 {
			found = append(found, filepath.Base(path))
		}
		return nil
	})
	return found
}
