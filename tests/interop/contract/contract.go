// Package contract holds what a host and a plugin agree on before they speak.
package contract

import goplugin "github.com/hashicorp/go-plugin"

// CallbackID is the broker id under which a host serves its callbacks. It is fixed, never negotiated.
const CallbackID = 1

// ToolPlugin is the key of the tool category in a plugin map. It never travels.
const ToolPlugin = "tool"

// Handshake makes a plugin refuse to run by itself and a host refuse a program that is no plugin.
var Handshake = goplugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "PLUGGABLEHARNESS_AGENT_PLUGIN",
	MagicCookieValue: "pluggableharness-agent-v1-a6f3c9d2-plugin-handshake",
}
