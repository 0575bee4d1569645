package shotx
import ("testing";"kennel/infra/browser";"time")
const base="http://localhost:28080"
func TestFirst(t *testing.T){
 b:=browser.Start(t); p:=b.Page(t, browser.Desktop)
 p.Goto(base+"/login"); p.Fill("E-mail","operator@kennel.local"); p.Fill("Password","l2dc-hfwz-yezp-bdg6"); p.Press("Enter")
 p.At("^/account/password")
 p.Fill("The password you have","l2dc-hfwz-yezp-bdg6"); p.Fill("Password, at least 10 characters","operators password 1");  p.Press("Enter"); p.See("Your password is changed.")
}
func TestX(t *testing.T){
 b:=browser.Start(t); p:=b.Page(t, browser.Desktop)
 p.Goto(base+"/login"); p.Fill("E-mail","operator@kennel.local"); p.Fill("Password","operators password 1"); p.Press("Enter"); p.SeeRole("heading","Overview")
 p.Goto(base+"/things/amigo:00e20100/robot"); time.Sleep(4*time.Second)
 p.Shot("/tmp/ar/shots/robot-desktop.png"); t.Log(p.Wide())
 p.Look("dark", browser.Phone);  time.Sleep(time.Second); p.Shot("/tmp/ar/shots/robot-phone.png"); t.Log(p.Wide())
 p.Look("light", browser.Desktop)
 p.Goto(base+"/things/amigo:00e20100"); time.Sleep(time.Second); p.Shot("/tmp/ar/shots/thing.png")
 p.Goto(base+"/things/amigo:00e20100/settings"); time.Sleep(time.Second); p.Shot("/tmp/ar/shots/settings.png")
 p.Goto(base+"/things"); time.Sleep(time.Second); p.Shot("/tmp/ar/shots/things.png")
}
