// The part of Polly, a library for retries, that the generated client names. It is used only if a retry policy is set.
using System;
using System.Threading.Tasks;

namespace Polly
{
    public enum OutcomeType { Successful, Failure }

    public class PolicyResult<TResult>
    {
        public OutcomeType Outcome { get; }
        public Exception FinalException { get; }
        public TResult Result { get; }
    }

    public interface ISyncPolicy<TResult>
    {
    }

    public interface IAsyncPolicy<TResult>
    {
        Task<PolicyResult<TResult>> ExecuteAndCaptureAsync(Func<Task<TResult>> action);
    }
}
