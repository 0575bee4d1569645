package intake

import (
	"bytes"
	"strings"
	"testing"

	"kennel/infra/api/files"
	"kennel/infra/errs"
)

func FuzzSend(f *testing.F) {
	f.Add("Action=SendMessage&MessageAttribute.1.Name=A&MessageAttribute.1.Value.DataType=String&MessageAttribute.1.Value.StringValue=b&MessageBody=WzFd&Version=2012-11-05")
	f.Add("Action=SendMessage&MessageBody=%41&MessageBody=%zz")
	f.Fuzz(func(t *testing.T, form string) {
		m, err := parseSend(form)
		if err != nil {
			if errs.KindOf(err) != errs.Invalid || errs.CodeOf(err) == "" {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if m.body == "" || len(m.body) > maxMessage || len(m.attributes) > maxAttributes || len(m.digest()) != 32 {
			t.Fatalf("%+v", m)
		}
		if text, err := m.contents(); err == nil {
			_, _ = parseEvents(text) // it returns
		}
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(`[{"source":"a","ts":1,"seq":1,"level":"info","robot_id":"00e20100","boot_id":"b","event":"a.b","s1":"x"y"},{"source":"a","seq":2}]`))
	f.Add([]byte(`[1,{"seq":2},[[[]]]]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := parseEvents(text)
		if err != nil {
			if errs.CodeOf(err) != codeContents {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		seen := map[string]uint64{}
		for _, e := range b.events {
			if last, ok := seen[e.BootID]; e.Validate() != nil || e.RobotID != b.esn || ok && e.Seq <= last {
				t.Fatalf("%+v", e)
			}
			seen[e.BootID] = e.Seq
		}
	})
}

func FuzzCrash(f *testing.F) {
	f.Add([]byte("--x\r\nContent-Disposition: form-data; name=\"upload_file\"; filename=\"a.dmp\"\r\n\r\nMDMP\r\n--x--\r\n"))
	f.Add([]byte("--x\r\nContent-Disposition: form-data; name=robot.esn\r\n\r\n00e20100\r\n--x"))
	f.Fuzz(func(t *testing.T, body []byte) {
		form, err := parseCrash(bytes.NewReader(body), "x")
		if err != nil {
			if errs.KindOf(err) != errs.Invalid {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if r, err := form.report("vic:00e20100"); err == nil && (len(r.Dump) == 0 || len(r.Dump) > files.MaxDump || !printable(r.Name, files.MaxName) || strings.Contains(r.OSVersion, "\n")) {
			t.Fatalf("%+v", r)
		}
	})
}
