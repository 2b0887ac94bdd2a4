/** A service with two threads that look things up in a table of 48 MiB. */
public final class Service {
    private static final long[] TABLE = new long[6 << 20];

    private static void work(long seed) {
        long at = seed;
        while (true) {
            at = (at * 6364136223846793005L + 1442695040888963407L) >>> 1;
            TABLE[(int) (at % TABLE.length)]++;
        }
    }

    public static void main(String[] words) {
        for (int index = 0; index < TABLE.length; index += 512) {
            TABLE[index] = index;
        }
        System.out.println("ready");
        new Thread(() -> work(1)).start();
        work(2);
    }
}
