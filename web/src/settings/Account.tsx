// Who is signed in, with which rights, and where the token comes from.

import { currentSession, type Session } from "../gateway";
import { SignOut } from "../SignOut";
import { useStore } from "../store";
import { rights, source } from "./rights";

export function Account() {
  const session = useStore(currentSession);
  return (
    <section className="account" aria-label="Account">
      <h3>Account</h3>
      <dl>
        {rows(session).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
      {session.tokenNeeded && <SignOut className="" />}
    </section>
  );
}

function rows(s: Session): [string, string][] {
  return [
    ["Signed in as", s.subject || (s.tokenNeeded ? "Operator" : "Operator, without signing in")],
    ...(s.tenant ? [["Tenant", s.tenant] as [string, string]] : []),
    ["May", rights(s)],
    ["Access", source(s)],
    ...(s.expires ? [["Until", new Date(s.expires).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })] as [string, string]] : []),
  ];
}
