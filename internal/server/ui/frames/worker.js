// Registers the service worker of notifications for the page, and tells it when the worker is ready.
{
  const ready = async () => {
    const registration = await navigator.serviceWorker.register("../push.js");
    const worker = registration.installing ?? registration.waiting;
    await new Promise((resolve, reject) => {
      const check = () => {
        if (!worker || worker.state === "activated") resolve();
        if (worker?.state === "redundant") reject(new Error("the worker can't be installed"));
      };
      worker?.addEventListener("statechange", check);
      check();
    });
  };
  const tell = (error) => parent.postMessage({ type: "worker", error }, location.origin);
  ready().then(() => tell(""), (e) => tell(e.message));
}
