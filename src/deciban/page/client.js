// The service that has the page, asked by relative addresses, with a token where one is kept.

const KEPT = "deciban-token";

// An answer that is none: what the service says is wrong, and its status (0 where nothing answered).
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// The token is kept while the tab of the browser is open.
export function keepToken(token) {
  sessionStorage.setItem(KEPT, token);
}

function headersFor(body) {
  const token = sessionStorage.getItem(KEPT);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return body === undefined ? headers : { ...headers, "Content-Type": "application/json" };
}

async function asked(path, body) {
  const options = { headers: headersFor(body), cache: "no-cache", redirect: "error" };
  if (body !== undefined) Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Refused(0, "the service does not answer; it is asked again");
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, problem.detail || `the service answered ${answer.status}`);
}

// JSON from the service; a body is sent by POST.
export async function ask(path, body) {
  return (await asked(path, body)).json();
}

// Text from the service.
export async function askText(path) {
  return (await asked(path)).text();
}
