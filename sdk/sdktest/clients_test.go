package sdktest_test

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"kennel/infra/api/robotpb"
	"kennel/infra/browser"
	"kennel/sdk/sdktest"
)

// python is Debian's, for which setup.sh installs gRPC.
const python = "/usr/bin/python3"

// client runs a client's own tests against two robots.
func client(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "KENNEL_ROBOT="+sdktest.Start(t, nil).File(t, nil), "KENNEL_OTHER="+sdktest.Start(t, nil).File(t, nil),
		"PYTHONPATH=../python", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

func TestPython(t *testing.T) {
	t.Parallel()
	client(t, python, "../python/tests/test_kennel.py")
}

// TestPythonMessages: the generated module is made of the API as it is.
func TestPythonMessages(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), python, "-c", "from kennel._pb import robot_pb2; print(robot_pb2.DESCRIPTOR.serialized_pb.hex())")
	cmd.Env = append(os.Environ(), "PYTHONPATH=../python", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(bytes.TrimSpace(out))))
	if err != nil {
		t.Fatal(err)
	}
	got := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(b, got); err != nil {
		t.Fatal(err)
	}
	want := protodesc.ToFileDescriptorProto(robotpb.File_robot_proto)
	want.Name = got.Name
	for _, m := range want.MessageType {
		for _, m := range append(m.NestedType, m) {
			for _, f := range m.Field {
				f.JsonName = nil // protoc for Python leaves it out
			}
		}
	}
	if !proto.Equal(got, want) {
		t.Error("sdk/python/kennel/_pb/robot_pb2.py was made of another robot.proto; kennel/_pb/__init__.py says how it is made")
	}
}

func TestNode(t *testing.T) {
	t.Parallel()
	client(t, "node", "--test", "../js/kennel.test.mjs")
}

// TestInBrowser: the same by fetch and WebSocket. It runs before the others, which compile programs and would leave a slow machine too little for a browser.
func TestInBrowser(t *testing.T) {
	robot := sdktest.Start(t, http.FileServer(http.Dir("../js")))
	page := browser.Start(t).Page(t, browser.Desktop)
	page.Goto("https://" + robot.Addr + "/kennel.test.html?token=" + url.QueryEscape(sdktest.Token))
	page.See("The end: ")
	if text := page.Text(); !strings.Contains(text, "all passed") {
		t.Error(text)
	}
}
