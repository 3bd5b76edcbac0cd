// Browsers refuse web workers on pages opened from disk. There, run the search worker in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      window.addEventListener("message", event => {
        if (event.source !== this.frame.contentWindow) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      const page = this.frame.contentDocument;
      page.open();
      page.write(`<body><script>
        var self = window;
        postMessage = (data, ...rest) => parent.postMessage(data, "*");
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((resolve, reject) => {
          const script = document.createElement("script");
          script.src = url; script.onload = resolve; script.onerror = reject;
          document.body.append(script);
        })), Promise.resolve());
      <\/script><script src="${url}"><\/script>`);
      page.close();
      this.ready = new Promise(resolve => this.frame.contentWindow.addEventListener("load", resolve));
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() { this.frame.remove(); }
  };
}
