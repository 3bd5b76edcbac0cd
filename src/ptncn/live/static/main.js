// Connects the page to its server, and passes messages to the visible view.
import * as stream from "./stream.js";
import * as world from "./world.js";

const VIEWS = { world, stream };
const connection = document.getElementById("connection");
const notice = document.getElementById("notice");
let view = null;
let socket = null;
let run = null; // identifies the server process
let quiet = 0;

history.replaceState(null, "", location.pathname); // the token is now in a cookie; hide it from the address bar

export function say(type, value = null) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type, value }));
}

function show(text, state) {
  connection.textContent = text;
  connection.className = `connection ${state}`;
}

function refuse(text) {
  notice.textContent = text;
  notice.hidden = false;
  clearTimeout(quiet);
  quiet = setTimeout(() => { notice.hidden = true; }, 8000);
}

function receive(message, payload) {
  if (run !== null && message.type === "hello" && message.run !== run) {
    socket.onmessage = null;
    location.reload(); // the server was restarted and may serve the other page
  } else if (message.type === "hello") {
    run = message.run;
    view = VIEWS[message.page];
    document.getElementById(message.page).hidden = false;
    view.begin(message, say);
  } else if (message.type === "visitors") {
    show(message.count === 1 ? "Connected; no other visitors" : `Connected; ${message.count} visitors share this page`, "open");
  } else if (message.type === "refused") {
    refuse(`That did not work. ${message.why}`);
  } else {
    view?.receive(message, payload);
  }
}

// Four bytes with the length of the header, the header, and numbers or pixels.
function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return [header, buffer, 4 + length];
}

function connect() {
  const address = new URL("live", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  let opened = false;
  socket.onopen = () => { opened = true; };
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") return receive(JSON.parse(data));
    const [header, buffer, offset] = unpack(data);
    return receive(header, { buffer, offset });
  };
  socket.onclose = ({ reason, target }) => {
    show(reason ? `Refused: ${reason}; trying again` : "Connection lost; trying again", "lost");
    setTimeout(connect, 2000);
    if (!opened) explain(target);
  };
}

// Browsers do not tell a page why a socket was refused, but an ordinary request gets the reason.
async function explain(lost) {
  const answer = await fetch(location.pathname).catch(() => null);
  if (answer?.status === 403 && lost === socket) show(`Refused: ${await answer.text()}`, "lost");
}

connect();
