// Requests to the service of this page, by relative URLs, with the stored token if there is one.

const TOKEN_KEY = "deciban-token";

// A failed request: message and HTTP status (0 if the service is unreachable).
export class ServiceError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Store the token until the browser tab is closed.
export function keepToken(token) {
  sessionStorage.setItem(TOKEN_KEY, token);
}

function headersFor(body) {
  const token = sessionStorage.getItem(TOKEN_KEY);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return body === undefined ? headers : { ...headers, "Content-Type": "application/json" };
}

async function request(path, body) {
  const options = { headers: headersFor(body), cache: "no-cache", redirect: "error" };
  if (body !== undefined) Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new ServiceError(0, "the service does not respond; retrying");
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new ServiceError(response.status, problem.detail || `the service responded with status ${response.status}`);
}

// Request JSON; a body is sent by POST.
export async function ask(path, body) {
  return (await request(path, body)).json();
}

// Request text.
export async function askText(path) {
  return (await request(path)).text();
}
